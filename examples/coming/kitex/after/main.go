// Command after is the same server and client with Anser.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/anser-rpc/anser"
)

type Args struct{ A, B int }

type Reply struct{ C int }

type Arith struct{}

func (*Arith) Mul(ctx context.Context, args *Args) (*Reply, error) {
	return &Reply{C: args.A * args.B}, nil
}

func main() {
	s := anser.NewServer()
	if err := s.Register(new(Arith)); err != nil {
		log.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{A: 7, B: 8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("7 * 8 =", reply.C)
}

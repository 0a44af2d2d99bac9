// Command structs is the same server and client, with the structs of Kitex over Anser.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/thrift"
	"github.com/anser-rpc/anser/examples/coming/kitex_gen/arith"
)

type handler struct{}

func (*handler) Mul(ctx context.Context, req *arith.Request) (*arith.Reply, error) {
	return &arith.Reply{C: req.A * req.B}, nil
}

func main() {
	s := anser.NewServer(anser.Codecs(thrift.Binary()))
	if err := s.RegisterName("Arith", new(handler)); err != nil {
		log.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()

	c, err := anser.Dial(l.Addr().String(), anser.Codec(thrift.Binary()))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply, err := anser.Call[arith.Reply](ctx, c, "Arith.Mul", &arith.Request{A: 7, B: 8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("7 * 8 =", reply.C)
}

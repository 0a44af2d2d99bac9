// Command before is a server and a client with net/rpc.
package main

import (
	"fmt"
	"log"
	"net"
	"net/rpc"
)

type Args struct{ A, B int }

type Reply struct{ C int }

type Arith struct{}

func (*Arith) Mul(args *Args, reply *Reply) error {
	reply.C = args.A * args.B
	return nil
}

func main() {
	s := rpc.NewServer()
	if err := s.Register(new(Arith)); err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Accept(l)

	c, err := rpc.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	var reply Reply
	if err := c.Call("Arith.Mul", &Args{A: 7, B: 8}, &reply); err != nil {
		log.Fatal(err)
	}
	fmt.Println("7 * 8 =", reply.C)
}

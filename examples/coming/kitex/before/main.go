// Command before is a server and a client with Kitex.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/server"

	"github.com/anser-rpc/anser/examples/coming/kitex_gen/arith"
	service "github.com/anser-rpc/anser/examples/coming/kitex_gen/arith/arith"
)

type handler struct{}

func (*handler) Mul(ctx context.Context, req *arith.Request) (*arith.Reply, error) {
	return &arith.Reply{C: req.A * req.B}, nil
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := service.NewServer(new(handler), server.WithListener(l))
	go s.Run()
	defer s.Stop()

	c, err := service.NewClient("arith", client.WithHostPorts(l.Addr().String()), client.WithRPCTimeout(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	reply, err := c.Mul(context.Background(), &arith.Request{A: 7, B: 8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("7 * 8 =", reply.C)
}

// Command before is a server and a client with rpcx.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/smallnest/rpcx/client"
	"github.com/smallnest/rpcx/server"
)

type Args struct{ A, B int }

type Reply struct{ C int }

type Arith struct{}

func (*Arith) Mul(ctx context.Context, args *Args, reply *Reply) error {
	reply.C = args.A * args.B
	return nil
}

func main() {
	s := server.NewServer()
	if err := s.Register(new(Arith), ""); err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.ServeListener("tcp", l)
	defer s.Close()

	d, err := client.NewPeer2PeerDiscovery("tcp@"+l.Addr().String(), "")
	if err != nil {
		log.Fatal(err)
	}
	c := client.NewXClient("Arith", client.Failover, client.RandomSelect, d, client.DefaultOption)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var reply Reply
	if err := c.Call(ctx, "Mul", &Args{A: 7, B: 8}, &reply); err != nil {
		log.Fatal(err)
	}
	fmt.Println("7 * 8 =", reply.C)
}

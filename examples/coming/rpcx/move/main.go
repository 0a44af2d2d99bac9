// Command move is a service on its way from rpcx to Anser: servers and clients of both, at the same
// time.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/smallnest/rpcx/client"
	rpcxlog "github.com/smallnest/rpcx/log"
	"github.com/smallnest/rpcx/server"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

type Args struct{ A, B int }

type Reply struct{ C int }

type Arith struct{}

func (*Arith) Mul(ctx context.Context, args *Args, reply *Reply) error {
	reply.C = args.A * args.B
	return nil
}

func main() {
	rpcxlog.SetDummyLogger() // a client logs the end of its connection to the old server

	// The old server.
	before := server.NewServer()
	if err := before.RegisterName("Arith", new(Arith), ""); err != nil {
		log.Fatal(err)
	}
	old, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go before.ServeListener("tcp", old)

	// The new server, which clients of rpcx can call too.
	after := anser.NewServer(anser.Protocols(protocols.RPCXClients()))
	if err := after.RegisterName("Arith", new(Arith)); err != nil {
		log.Fatal(err)
	}
	fresh, err := after.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go after.Serve(fresh)
	defer after.Close()

	// The old client has both servers in its list, as it would from a registry.
	servers, err := client.NewMultipleServersDiscovery([]*client.KVPair{
		{Key: "tcp@" + old.Addr().String()},
		{Key: "tcp@" + fresh.Addr().String()},
	})
	if err != nil {
		log.Fatal(err)
	}
	theirs := client.NewXClient("Arith", client.Failover, client.RoundRobin, servers, client.DefaultOption)
	defer theirs.Close()

	// The new client has both as well.
	ours, err := anser.Dial("rpcx://"+old.Addr().String()+","+fresh.Addr().String(), protocols.RPCX())
	if err != nil {
		log.Fatal(err)
	}
	defer ours.Close()

	call := func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var one Reply
		if err := theirs.Call(ctx, "Mul", &Args{A: i, B: 8}, &one); err != nil {
			log.Fatal(err)
		}
		two, err := anser.Call[Reply](ctx, ours, "Arith.Mul", &Args{A: i, B: 8}, anser.Idempotent())
		if err != nil {
			log.Fatal(err)
		}
		if one.C != 8*i || two.C != 8*i {
			log.Fatalf("%d * 8 is %d and %d", i, one.C, two.C)
		}
	}
	for i := range 100 {
		call(i)
	}

	// The old server leaves the list, and then stops.
	servers.Update([]*client.KVPair{{Key: "tcp@" + fresh.Addr().String()}})
	before.Close()
	for i := range 100 {
		call(i)
	}

	// A client of Anser that has moved altogether speaks Anser's own protocol.
	c, err := anser.Dial(fresh.Addr().String())
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

// Command member is a stock server or a stock client of rpcx, which "anser demo" starts next to its
// own services:
//
//	member serve              # Prices.Of
//	member call ADDRESS EVERY # Arith.Mul, once in this time
//
// Its first line says that it is ready, and where; further lines of the client say what each of its
// calls has come to. It ends when its standard input does.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/smallnest/rpcx/client"
	rpcxlog "github.com/smallnest/rpcx/log"
	"github.com/smallnest/rpcx/server"
)

type Order struct {
	Item  string
	Count int
}

type Price struct{ Cents int }

type Prices struct{}

// Of returns a price that its caller can check.
func (*Prices) Of(_ context.Context, order *Order, price *Price) error {
	price.Cents = 100 * len(order.Item) * order.Count
	return nil
}

type Args struct{ A, B int }

type Reply struct{ C int }

func main() {
	rpcxlog.SetDummyLogger()
	signal.Ignore(os.Interrupt) // Ctrl-C is for the demo, which ends this program
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serve()
	case len(os.Args) == 4 && os.Args[1] == "call":
		err = call(os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("usage: member serve, or member call ADDRESS EVERY")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// say writes a line of JSON.
func say(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

func serve() error {
	s := server.NewServer()
	if err := s.Register(new(Prices), ""); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := say(map[string]string{"address": l.Addr().String()}); err != nil {
		return err
	}
	return s.ServeListener("tcp", l)
}

// call calls in MessagePack, the default of rpcx.
func call(address, every string) error {
	interval, err := time.ParseDuration(every)
	if err != nil {
		return err
	}
	d, err := client.NewPeer2PeerDiscovery("tcp@"+address, "")
	if err != nil {
		return err
	}
	c := client.NewXClient("Arith", client.Failtry, client.RandomSelect, d, client.DefaultOption)
	defer c.Close()
	if err := say(map[string]string{"address": address}); err != nil {
		return err
	}
	for n := 0; ; n++ {
		began := time.Now()
		done := struct {
			Micros int64  `json:"micros"`
			Error  string `json:"error,omitempty"`
		}{}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		var reply Reply
		if err := c.Call(ctx, "Mul", &Args{A: n, B: 7}, &reply); err != nil {
			done.Error = err.Error()
		} else if reply.C != 7*n {
			done.Error = fmt.Sprintf("wrong reply: %d * 7 = %d", n, reply.C)
		}
		cancel()
		done.Micros = time.Since(began).Microseconds()
		if err := say(done); err != nil {
			return err
		}
		time.Sleep(interval - time.Since(began))
	}
}

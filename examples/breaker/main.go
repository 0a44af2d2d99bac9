// Command breaker calls three servers, one of which breaks down: its circuit breaker opens, calls
// go to the others, and it is used again after it has recovered.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
)

// Order and Receipt are the messages.
type (
	Order   struct{ Item string }
	Receipt struct{ Server string }
)

// Place is the method of the servers.
const Place anser.Method[Order, Receipt] = "Orders.Place"

var (
	names = map[string]string{} // of the servers, by address
	sick  atomic.Bool           // bob fails all calls
)

// serve starts a server and returns its address.
func serve(name string) (*anser.Server, string, error) {
	s := anser.NewServer()
	Place.Handle(s, func(context.Context, *Order) (*Receipt, error) {
		if name == "bob" && sick.Load() {
			return nil, anser.Errorf(anser.Internal, "the disk is full")
		}
		return &Receipt{name}, nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	go s.Serve(l)
	names[l.Addr().String()] = name
	return s, l.Addr().String(), nil
}

// order makes 30 calls and prints their results.
func order(out io.Writer, c *anser.Client) {
	who := map[string]int{}
	for range 30 {
		receipt, err := Place.Call(context.Background(), c, &Order{"goose feathers"})
		if err != nil {
			who["failed"]++
			continue
		}
		who[receipt.Server]++
	}
	fmt.Fprintf(out, "  30 calls: %v\n", who)
}

func run(out io.Writer) error {
	var addresses []string
	for _, name := range []string{"ann", "bob", "cleo"} {
		s, address, err := serve(name)
		if err != nil {
			return err
		}
		defer s.Close()
		addresses = append(addresses, address)
	}
	events := make(chan anser.HealthEvent, 16)
	c, err := anser.Dial("tcp://"+strings.Join(addresses, ","), anser.Balancer(balance.RoundRobin()),
		anser.Breaker{Calls: 10}, // it opens when half of at least this number of calls fail; the default is 200
		anser.Observe(anser.Observer{Health: func(e anser.HealthEvent) { events <- e }}),
		anser.Logger(slog.New(slog.DiscardHandler))) // the log would contain the same
	if err != nil {
		return err
	}
	defer c.Close()
	order(out, c)

	sick.Store(true)
	fmt.Fprintln(out, "bob breaks down")
	order(out, c)
	show(out, <-events)
	order(out, c)

	sick.Store(false)
	fmt.Fprintln(out, "bob is well")
	for closed := false; !closed; {
		Place.Call(context.Background(), c, &Order{"goose feathers"}) // some of them are the probes
		select {
		case e := <-events:
			show(out, e)
			closed = e.Change == anser.BreakerClosed
		case <-time.After(5 * time.Millisecond):
		}
	}
	order(out, c)
	return nil
}

func show(out io.Writer, e anser.HealthEvent) {
	fmt.Fprintf(out, "%s at %s: %s, %s\n", e.Method, names[e.Instance.Address], e.Change, e.Reason)
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

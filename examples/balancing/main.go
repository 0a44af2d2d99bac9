// Command balancing calls four servers of different weights through different balancers, and draws
// each server's share of the calls.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// Query asks for a user, and Answer names the server that has looked it up.
type (
	Query  struct{ User string }
	Answer struct{ Server string }
)

// Find is the method of the servers.
const Find anser.Method[Query, Answer] = "Users.Find"

// serve runs a server and registers it.
func serve(m *registry.Memory, in registry.Instance) (*anser.Server, error) {
	s := anser.NewServer()
	Find.Handle(s, func(context.Context, *Query) (*Answer, error) { return &Answer{in.ID}, nil })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go s.Serve(l)
	in.Address = l.Addr().String()
	return s, m.Register(context.Background(), in)
}

// draw makes a thousand calls for 97 users and draws the shares of the servers.
func draw(out io.Writer, scheme registry.Scheme, b balance.Balancer) error {
	c, err := anser.Dial("memory:///users", scheme, anser.Balancer(b),
		// The key of a call, for consistent_hash and maglev. The default is the whole request.
		anser.HashBy(func(_ context.Context, _ string, request any) string { return request.(*Query).User }))
	if err != nil {
		return err
	}
	defer c.Close()
	for !connected(c) { // so that establishing connections does not affect the counts
		if _, err := Find.Call(context.Background(), c, &Query{fmt.Sprint(rand.Int())}); err != nil {
			return err
		}
	}
	calls := map[string]int{}
	met := map[[2]string]bool{} // pairs of a user and a server that answered it
	for i := range 1000 {
		user := fmt.Sprint("user-", i%97)
		answer, err := Find.Call(context.Background(), c, &Query{user})
		if err != nil {
			return err
		}
		calls[answer.Server]++
		met[[2]string{user, answer.Server}] = true
	}
	fmt.Fprintf(out, "%s: each user meets %d of the servers\n", b.Name(), len(met)/97)
	for _, name := range names {
		percent := (calls[name] + 5) / 10
		fmt.Fprintf(out, "  %-5s %2d%% %s\n", name, percent, strings.Repeat("█", percent))
	}
	return nil
}

// connected reports whether the client has a connection to each of the servers.
func connected(c *anser.Client) bool {
	n := 0
	for _, in := range c.Status().Instances {
		if in.Connected {
			n++
		}
	}
	return n == len(names)
}

var names = []string{"ann", "bob", "cleo", "dora"}

func run(out io.Writer) error {
	m := registry.NewMemory()
	defer m.Close()
	for i, name := range names {
		s, err := serve(m, registry.Instance{Service: "users", ID: name, Weight: 100 * (1 + i)})
		if err != nil {
			return err
		}
		defer s.Close()
	}
	for _, name := range []string{"round_robin", "weighted", "consistent_hash", "maglev"} {
		b, err := balance.ByName(name, balance.Here{})
		if err != nil {
			return err
		}
		if err := draw(out, m.Scheme("memory"), b); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

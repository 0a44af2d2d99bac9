package etcd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// testTTL is longer than a pause of the machine: a lease that expires meanwhile would change the
// list.
const testTTL = 20 * time.Second

func TestConformance(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		prefix, ttl := freshPrefix(), testTTL
		if strings.HasSuffix(t.Name(), "/CloseDuringOutage") {
			ttl = 2 * time.Second // this test waits for it to expire
		}
		return registrytest.Fixture{
			Open:         func() registry.Registry { return open(t, prefix, ttl) },
			Stop:         shared.Stop,
			Start:        func() { shared.start(t) },
			ForgetLeases: func() { forgetLeases(t, shared) },
		}
	})
}

// open returns a registry that the test closes.
func open(t *testing.T, prefix string, ttl time.Duration) registry.Registry {
	t.Helper()
	r, err := etcd.Dial([]string{shared.endpoint}, etcd.Prefix(prefix), etcd.TTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func Example() {
	endpoint := shared.endpoint // for example 127.0.0.1:2379
	server, err := etcd.Dial([]string{endpoint}, etcd.Prefix("/shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close() // withdraws the announced instances
	client, err := etcd.Dial([]string{endpoint}, etcd.Prefix("/shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	in := registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"}
	if err := server.Register(ctx, in); err != nil {
		fmt.Println(err)
		return
	}
	client.Watch(ctx, "arith", func(list []registry.Instance) {
		fmt.Println(len(list), list[0].Address, list[0].Zone)
		cancel() // an application watches until it stops
	}, nil)
	// Output: 1 10.0.0.1:8972 north
}

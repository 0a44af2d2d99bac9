package etcd_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// testTTL is short enough to wait for, and long enough for a machine that is busy.
const testTTL = 2 * time.Second

func TestConformance(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		prefix := freshPrefix()
		return registrytest.Fixture{
			Open:         func() registry.Registry { return open(t, prefix) },
			Stop:         shared.Stop,
			Start:        func() { shared.start(t) },
			ForgetLeases: func() { forgetLeases(t, shared) },
		}
	})
}

// open opens a registry that the test closes.
func open(t *testing.T, prefix string, opts ...etcd.DialOption) registry.Registry {
	t.Helper()
	opts = append([]etcd.DialOption{etcd.Prefix(prefix), etcd.TTL(testTTL)}, opts...)
	r, err := etcd.Dial([]string{shared.endpoint}, opts...)
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
	defer server.Close() // takes back what it announced
	client, err := etcd.Dial([]string{endpoint}, etcd.Prefix("/shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	in := registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"}
	if err := server.Register(ctx, in); err != nil {
		fmt.Println(err)
		return
	}
	client.Watch(ctx, "arith", func(list []registry.Instance) {
		fmt.Println(len(list), list[0].Address, list[0].Zone)
		cancel() // an application watches for as long as it runs
	}, nil)
	// Output: 1 10.0.0.1:8972 north
}

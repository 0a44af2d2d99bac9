package zookeeper_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/registrytest"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

// testTTL is short enough to wait for, and long enough for a machine that is busy.
const testTTL = 3 * time.Second

func TestConformance(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		prefix, ttl := freshPrefix(), testTTL
		if strings.HasSuffix(t.Name(), "/ThousandInstances") {
			ttl = 15 * time.Second // a busy server is silent for a while as it ends such a session
		}
		return registrytest.Fixture{
			Open: func() registry.Registry {
				r, err := zookeeper.Dial([]string{shared.endpoint}, zookeeper.Prefix(prefix), zookeeper.TTL(ttl))
				if err != nil {
					t.Fatal(err)
				}
				return r // the suite closes it
			},
			Stop:         shared.Stop,
			Start:        func() { shared.start(t) },
			ForgetLeases: func() { shared.forgetLeases(t) },
			Patience:     20 * time.Second,
		}
	})
}

func Example() {
	endpoint := shared.endpoint // for example 127.0.0.1:2181
	server, err := zookeeper.Dial([]string{endpoint}, zookeeper.Prefix("/shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close() // takes back what it announced
	client, err := zookeeper.Dial([]string{endpoint}, zookeeper.Prefix("/shop"))
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

package zookeeper_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/registrytest"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

// testTTL is longer than a pause of the machine, and than a busy server is silent while it ends
// the session of a thousand instances: a session that expires meanwhile would change the list.
const testTTL = 20 * time.Second

// shortTTL is for tests that wait for a session to expire, and for tests that end one:
// forgetLeases may leave its owner with a connection on which the server no longer answers, which
// is detected after two thirds of the TTL.
const shortTTL = 3 * time.Second

// shortLived lists the tests of the suite with such sessions.
var shortLived = []string{"CloseDuringOutage", "LostLeaseIsFoundAgain", "ForgottenTwice"}

func TestConformance(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		prefix, ttl := freshPrefix(), testTTL
		if slices.Contains(shortLived, path.Base(t.Name())) {
			ttl = shortTTL
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
	defer server.Close() // withdraws the announced instances
	client, err := zookeeper.Dial([]string{endpoint}, zookeeper.Prefix("/shop"))
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

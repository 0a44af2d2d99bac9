package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/redis"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// testTTL is longer than a pause of the machine: an instance that expires meanwhile would change
// the list.
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
			ForgetLeases: func() { forget(t, shared, prefix) },
		}
	})
}

// open returns a registry that the test closes.
func open(t *testing.T, prefix string, ttl time.Duration) registry.Registry {
	t.Helper()
	r, err := redis.Dial([]string{shared.address}, redis.Prefix(prefix), redis.TTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// forget deletes all keys under the prefix.
func forget(t *testing.T, s *server, prefix string) {
	t.Helper()
	keys := strings.Fields(s.do(t, "--scan", "--pattern", prefix+":*"))
	if len(keys) > 0 {
		s.do(t, append([]string{"DEL"}, keys...)...)
	}
}

func Example() {
	address := shared.address // for example 127.0.0.1:6379
	server, err := redis.Dial([]string{address}, redis.Prefix("shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close() // withdraws the announced instances
	client, err := redis.Dial([]string{address}, redis.Prefix("shop"))
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

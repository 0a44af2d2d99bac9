package redis_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/redis"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// An instance is where rpcx looks for it, and what rpcx has written is an instance.
func TestLayoutOfRPCX(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := redis.DialRPCX([]string{shared.address}, "/rpcx_test", redis.TTL(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in := registry.Instance{Service: "Arith", Address: "127.0.0.1:8972", Weight: 500, Group: "blue"}
	if err := r.Register(ctx, in); err != nil {
		t.Fatal(err)
	}
	const key = "//rpcx_test/Arith/tcp@127.0.0.1:8972"
	if got := shared.do(t, "get", key); !strings.Contains(got, `"Key":"/rpcx_test/Arith/tcp@127.0.0.1:8972","Value":"`) {
		t.Error(got)
	}
	left := func() int {
		ms, err := strconv.Atoi(shared.do(t, "pttl", key))
		if err != nil {
			t.Fatal(err)
		}
		return ms
	}
	before := left()
	if before < 0 {
		t.Errorf("the key expires in %d ms", before)
	}
	shared.do(t, "set", "//rpcx_test/Arith", `{"Key":"/rpcx_test/Arith","Value":"QXJpdGg=","LastIndex":1}`)
	shared.do(t, "set", "//rpcx_test/Arith/tcp@127.0.0.1:8973", `{"Key":"/rpcx_test/Arith/tcp@127.0.0.1:8973","Value":"c3RhdGU9aW5hY3RpdmUmd2VpZ2h0PTc=","LastIndex":1}`)
	list, err := registry.List(ctx, r, "Arith")
	want := []registry.Instance{in, {Service: "Arith", Address: "rpcx://127.0.0.1:8973", Weight: 700, State: registry.Disabled}}
	if err != nil || !registry.Equal(list, want) {
		t.Errorf("%+v, %v, want %+v", list, err, want)
	}
	if names, err := r.Services(ctx); err != nil || !slices.Equal(names, []string{"Arith"}) {
		t.Errorf("%q, %v", names, err)
	}
	regtest.Eventually(t, regtest.Patience, "a renewal", func() bool {
		now := left()
		defer func() { before = now }()
		return now > before
	})
	if list, err := registry.List(ctx, r, "Arith"); err != nil || len(list) != 2 {
		t.Errorf("after renewals: %+v, %v", list, err)
	}
	if err := r.Deregister(ctx, in); err != nil {
		t.Fatal(err)
	}
	if got := shared.do(t, "exists", key); got != "0" {
		t.Error(got)
	}
	if err := r.Register(ctx, registry.Instance{Service: "Arith", Address: "unix:///run/arith"}); err == nil || !strings.Contains(err.Error(), "rpcx has no place for") {
		t.Error(err)
	}
	for base, opt := range map[string]redis.DialOption{"": redis.TTL(time.Second), "/rpcx": redis.Prefix("x")} {
		if r, err := redis.DialRPCX([]string{shared.address}, base, opt); err == nil {
			r.Close()
			t.Errorf("%q: no error", base)
		}
	}
}

// A watch sees what changes, and a record that another registry has taken over stays.
func TestWatchLayoutOfRPCX(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	open := func() registry.Registry {
		r, err := redis.DialRPCX([]string{shared.address}, "/rpcx_watch")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, second := open(), open()
	defer second.Close()
	lists := make(chan []registry.Instance, 10)
	watched := make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	go func() {
		watched <- second.Watch(watching, "Arith", func(list []registry.Instance) { lists <- list }, func(err error) { t.Error(err) })
	}()
	next := func(want ...registry.Instance) {
		t.Helper()
		select {
		case list := <-lists:
			if !registry.Equal(list, want) {
				t.Errorf("%+v, want %+v", list, want)
			}
		case <-ctx.Done():
			t.Fatalf("no update to %+v", want)
		}
	}
	next()
	in := registry.Instance{Service: "Arith", Address: "127.0.0.1:8972"}
	if err := first.Register(ctx, in); err != nil {
		t.Fatal(err)
	}
	next(in)
	in.State = registry.Draining
	if err := second.Register(ctx, in); err != nil { // takes it over
		t.Fatal(err)
	}
	next(in)
	if err := first.Deregister(ctx, in); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if list, err := registry.List(ctx, second, "Arith"); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v: it belongs to the second registry", list, err)
	}
	if err := second.Deregister(ctx, in); err != nil {
		t.Fatal(err)
	}
	next()
	stop()
	if err := <-watched; err != context.Canceled {
		t.Error(err)
	}
}

func TestConformanceOfRPCX(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		base, ttl := freshPrefix(), testTTL
		if strings.HasSuffix(t.Name(), "/CloseDuringOutage") {
			ttl = 2 * time.Second // this test waits for it to expire
		}
		return registrytest.Fixture{
			Open: func() registry.Registry {
				r, err := redis.DialRPCX([]string{shared.address}, base, redis.TTL(ttl))
				if err != nil {
					t.Fatal(err)
				}
				return r // the suite closes it
			},
			Stop:         shared.Stop,
			Start:        func() { shared.start(t) },
			ForgetLeases: func() { forget(t, shared, "/"+base) },
			HostPortOnly: true,
		}
	}, registrytest.Documents)
}

package consul_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// An instance is where rpcx looks for it, and what rpcx has written is an instance.
func TestLayoutOfRPCX(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := consul.DialRPCX(shared.endpoint(), "/rpcx_test", consul.TTL(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in := registry.Instance{Service: "Arith", Address: "127.0.0.1:8972", Weight: 500, Group: "blue"}
	if err := r.Register(ctx, in); err != nil {
		t.Fatal(err)
	}
	raw := shared.use(t).KV()
	pair, _, err := raw.Get("rpcx_test/Arith/tcp@127.0.0.1:8972", nil)
	if err != nil || pair == nil || !strings.HasPrefix(string(pair.Value), "anser=127.0.0.1%3A8972&anser-owner=") || pair.Session == "" {
		t.Fatalf("%+v, %v", pair, err)
	}
	for key, value := range map[string]string{"rpcx_test": "rpcx_path", "rpcx_test/Arith": "Arith", "rpcx_test/Arith/tcp@127.0.0.1:8973": "state=inactive&weight=7"} {
		if _, err := raw.Put(&api.KVPair{Key: key, Value: []byte(value)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	list, err := registry.List(ctx, r, "Arith")
	want := []registry.Instance{in, {Service: "Arith", Address: "rpcx://127.0.0.1:8973", Weight: 700, State: registry.Disabled}}
	if err != nil || !registry.Equal(list, want) {
		t.Errorf("%+v, %v, want %+v", list, err, want)
	}
	if names, err := r.Services(ctx); err != nil || !slices.Equal(names, []string{"Arith"}) {
		t.Errorf("%q, %v", names, err)
	}
	if err := r.Deregister(ctx, in); err != nil {
		t.Fatal(err)
	}
	if pair, _, err := raw.Get("rpcx_test/Arith/tcp@127.0.0.1:8972", nil); err != nil || pair != nil {
		t.Error(pair, err)
	}
	if err := r.Register(ctx, registry.Instance{Service: "Arith", Address: "unix:///run/arith"}); err == nil || !strings.Contains(err.Error(), "rpcx has no place for") {
		t.Error(err)
	}
	for base, opt := range map[string]consul.Option{"": consul.TTL(time.Second), "/rpcx": consul.Prefix("x")} {
		if r, err := consul.DialRPCX(shared.endpoint(), base, opt); err == nil {
			r.Close()
			t.Errorf("%q: no error", base)
		}
	}
}

// A watch sees what changes, and a record that another registry has taken over stays.
func TestWatchLayoutOfRPCX(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	open := func() registry.Registry {
		r, err := consul.DialRPCX(shared.endpoint(), "/rpcx_watch")
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
	s := shared
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		base, ttl := freshPrefix()+"rpcx", testTTL
		if strings.HasSuffix(t.Name(), "/CloseDuringOutage") {
			ttl = 10 * time.Second // this test waits for it to expire
		}
		return registrytest.Fixture{
			Open: func() registry.Registry {
				r, err := consul.DialRPCX(s.endpoint(), base, consul.TTL(ttl))
				if err != nil {
					t.Fatal(err)
				}
				return r // the suite closes it
			},
			Stop:         s.Stop,
			Start:        func() { s.start(t) },
			ForgetLeases: func() { endSessions(t, s) },
			HostPortOnly: true,
		}
	}, registrytest.Documents)
}

// endSessions ends all sessions, with the keys that belong to them.
func endSessions(t *testing.T, s *server) {
	t.Helper()
	sessions := s.use(t).Session()
	list, _, err := sessions.List(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if _, err := sessions.Destroy(e.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
}

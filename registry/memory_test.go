package registry_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/registrytest"
)

func TestMemory(t *testing.T) {
	registrytest.RunInBubble(t, func(t *testing.T) registrytest.Fixture {
		m := registry.NewMemory()
		return registrytest.Fixture{Open: func() registry.Registry { return m.Join() }}
	}, registrytest.Outages, registrytest.Leases)
}

// A target names a service of the Memory; closing a client's resolver leaves the Memory open.
func TestMemoryScheme(t *testing.T) {
	m := registry.NewMemory()
	defer m.Close()
	if err := m.Register(t.Context(), registry.Instance{Service: "arith", Address: "h:1"}); err != nil {
		t.Fatal(err)
	}
	open := func(m *registry.Memory, target string) (registry.Resolver, string, error) {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		s := m.Scheme("shop")
		if s.Name != "shop" {
			t.Errorf("the name is %q", s.Name)
		}
		return s.Open(u)
	}
	r, service, err := open(m, "shop:///arith")
	if err != nil || service != "arith" {
		t.Fatal(service, err)
	}
	want(t, addresses(t, r), "h:1")
	if err := r.(registry.Registry).Close(); err != nil {
		t.Error(err)
	}
	want(t, addresses(t, m), "h:1")
	for target, say := range map[string]string{
		"shop://host/arith":   "want shop:///service",
		"shop:///arith?x=1":   "want shop:///service",
		"shop:///arith#x":     "want shop:///service",
		"shop://me@/arith":    "want shop:///service",
		"shop:///":            "has no name",
		"shop:///arith/other": "use letters",
	} {
		if _, _, err := open(m, target); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s = %v, want %q", target, err, say)
		}
	}
	if _, _, err := open(nil, "shop:///arith"); err == nil || !strings.Contains(err.Error(), "registry.NewMemory") {
		t.Errorf("a Memory that is nil: %v", err)
	}
}

func ExampleMemory() {
	ctx := context.Background()
	server := registry.NewMemory()
	defer server.Close()
	client := server.Join() // the view of another process

	server.Register(ctx, registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"})
	list, err := registry.List(ctx, client, "arith")
	fmt.Println(list[0].Address, list[0].Zone, err)
	// Output: 10.0.0.1:8972 north <nil>
}

func ExampleMemory_Scheme() {
	m := registry.NewMemory()
	defer m.Close()
	s := anser.NewServer(anser.Announce(m.Join(), registry.Instance{Service: "arith"}))
	anser.Handle(s, "Arith.Double", func(_ context.Context, n *int) (*int, error) {
		twice := 2 * *n
		return &twice, nil
	})
	network := new(ansertest.Network)
	go s.Serve(network.Listen("a:1"))
	defer s.Close()

	c, err := anser.Dial("memory:///arith", m.Scheme("memory"), anser.Dialer(network.Dial))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	n := 21
	reply, err := anser.Call[int](context.Background(), c, "Arith.Double", &n)
	if err != nil {
		panic(err)
	}
	fmt.Println(*reply)
	// Output: 42
}

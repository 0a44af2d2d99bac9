package registry_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/registrytest"
)

func TestMemory(t *testing.T) {
	registrytest.RunInBubble(t, func(t *testing.T) registrytest.Fixture {
		m := registry.NewMemory()
		return registrytest.Fixture{Open: func() registry.Registry { return m.Join() }}
	}, registrytest.Outages, registrytest.Leases)
}

func ExampleMemory() {
	ctx := context.Background()
	server := registry.NewMemory()
	defer server.Close()
	client := server.Join() // what another process would have

	server.Register(ctx, registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"})
	list, err := registry.List(ctx, client, "arith")
	fmt.Println(list[0].Address, list[0].Zone, err)
	// Output: 10.0.0.1:8972 north <nil>
}

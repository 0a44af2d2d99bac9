package registrytest_test

import (
	"testing"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// The memory registry has its own test, in bubbles; this one checks that Run works without a
// bubble.
func TestRun(t *testing.T) {
	registrytest.Run(t, memory, registrytest.Outages, registrytest.Leases)
}

func memory(t *testing.T) registrytest.Fixture {
	m := registry.NewMemory()
	return registrytest.Fixture{Open: func() registry.Registry { return m.Join() }}
}

func ExampleRun() {
	// In a test file of the implementation:
	TestConformance := func(t *testing.T) {
		registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
			m := registry.NewMemory() // here: start a server, or choose an unused prefix
			return registrytest.Fixture{Open: func() registry.Registry { return m.Join() }}
		}, registrytest.Outages, registrytest.Leases) // the capabilities it lacks
	}
	_ = TestConformance
}

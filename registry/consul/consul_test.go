package consul_test

import (
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// testTTL is longer than a restart of the agent: a check that fails meanwhile would change the
// list.
const testTTL = time.Minute

func TestConformance(t *testing.T) {
	s := shared
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		prefix, ttl := freshPrefix(), testTTL
		if strings.HasSuffix(t.Name(), "/CloseDuringOutage") {
			ttl = 5 * time.Second // this test waits for it to expire
		}
		return registrytest.Fixture{
			Open: func() registry.Registry {
				r, err := consul.Dial(s.endpoint(), consul.Prefix(prefix), consul.TTL(ttl))
				if err != nil {
					t.Fatal(err)
				}
				return r // the suite closes it
			},
			Stop:         s.Stop,
			Start:        func() { s.start(t) },
			ForgetLeases: func() { s.forgetLeases(t) },
		}
	})
}

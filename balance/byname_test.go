package balance_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/balance"
)

func TestByName(t *testing.T) {
	names := balance.Names()
	if len(names) != len(constructors) {
		t.Errorf("%d names for %d balancers", len(names), len(constructors))
	}
	for _, name := range names {
		b, err := balance.ByName(name, munich)
		if err != nil || b.Name() != name {
			t.Errorf("%q: %v, %v", name, b, err)
		}
	}
	for _, c := range constructors {
		if _, err := balance.ByName(c.name, munich); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{
		"":           `unknown balancer "": want one of random, round_robin, weighted`,
		"Maglev":     `unknown balancer "Maglev"`,
		"closest":    `balancer "closest": the client's position is unknown: set Here.Latitude and Here.Longitude`,
		"roundrobin": "round_robin",
	} {
		if b, err := balance.ByName(name, balance.Here{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", name, b, err, want)
		}
	}
}

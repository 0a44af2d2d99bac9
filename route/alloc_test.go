package route_test

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/route"
)

// Finding the subset of a call allocates nothing, whatever the kinds of rules.
func TestRoutingDoesNotAllocate(t *testing.T) {
	d, err := route.Parse([]byte(whole))
	must(t, err)
	f := route.Routed(&d.Rules)
	md := anser.Metadata{"user": "u", "flow-env": "gray"}
	first := f("A.B", md)
	if first == nil || len(first.Filters) < 3 {
		t.Fatalf("the rules give %+v: want several filters", first)
	}
	if f("A.B", md) != first {
		t.Error("equal calls got different subsets")
	}
	if n := testing.AllocsPerRun(1000, func() { f("A.B", md) }); n != 0 {
		t.Errorf("%v allocations for each call", n)
	}
}

func BenchmarkRoute(b *testing.B) {
	for name, rules := range map[string]string{
		"nothing":   `{}`,
		"condition": `{"conditions":[{"when":{"methods":"A.*"},"to":{"id":"i"}}]}`,
		"all":       whole[len(`{"version":3,"author":"ada","time":"2026-01-02T15:04:05Z","comment":"c","rules":`) : len(whole)-1],
	} {
		b.Run(name, func(b *testing.B) {
			d, err := route.Parse([]byte(`{"rules":` + rules + `}`))
			must(b, err)
			f := route.Routed(&d.Rules)
			md := anser.Metadata{"user": "u", "flow-env": "gray"}
			b.ReportAllocs()
			for b.Loop() {
				f("A.B", md)
			}
		})
	}
}

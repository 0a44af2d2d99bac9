package console

import (
	"net/http"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/simulate"
	"github.com/anser-rpc/anser/registry"
)

// BenchmarkRound is what the console takes for a second of a system of 100 services with ten
// instances each, after their pages were read: figures, history, and the update for all viewers.
func BenchmarkRound(b *testing.B) {
	sim := simulate.New(simulate.Options{Services: 100, Instances: 10, Rate: 100, Base: "http://127.0.0.1:1/"})
	reg := registry.NewMemory()
	if err := sim.Register(b.Context(), reg); err != nil {
		b.Fatal(err)
	}
	c, err := New(Options{
		Registries: []collect.Source{{Name: "memory://", Kind: "memory", Resolver: reg}},
		Client:     &http.Client{Transport: simulate.Transport(sim)}, Guard: func(h http.Handler) http.Handler { return h },
	})
	if err != nil {
		b.Fatal(err)
	}
	c.collector.Look(time.Minute)
	for deadline := time.Now().Add(time.Minute); c.current().system.Processes.Read < 1000 || c.current().services[sim.Service(1)].Rate == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal("the pages were not read")
		}
	}
	round := *c.current().round
	c.Close()
	fresh, err := New(Options{Guard: func(h http.Handler) http.Handler { return h }})
	if err != nil {
		b.Fatal(err)
	}
	defer fresh.Close()
	b.ReportAllocs()
	for b.Loop() {
		next := round
		next.Time = round.Time.Add(time.Second)
		round = next
		fresh.round(&next)
	}
}

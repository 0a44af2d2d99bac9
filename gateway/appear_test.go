package gateway_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

// lateForClients is a registry that tells all watchers of a service but the first one a little
// later, as every registry may.
type lateForClients struct {
	*registry.Memory
	mu      sync.Mutex // guards watched
	watched map[string]bool
}

func (r *lateForClients) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	r.mu.Lock()
	first := !r.watched[service]
	r.watched[service] = true
	r.mu.Unlock()
	if first {
		return r.Memory.Watch(ctx, service, update, trouble)
	}
	return r.Memory.Watch(ctx, service, func(list []registry.Instance) {
		time.Sleep(50 * time.Millisecond)
		update(list)
	}, trouble)
}

// An instance that appears is asked what it serves once the client of its service knows it: no call
// fails.
func TestInstanceAppears(t *testing.T) {
	r := &lateForClients{Memory: registry.NewMemory(), watched: make(map[string]bool)}
	serve(t, r, registry.Instance{Service: "arith", ID: "one", Version: "1"}, arith)
	var mu sync.Mutex
	var failed []error
	g, err := gateway.New(parse(t, "services: [arith]"), gateway.Options{
		Registry: r, Logger: slog.New(slog.DiscardHandler),
		Dial: []anser.DialOption{anser.Observe(anser.Observer{CallEnded: func(_ context.Context, info *anser.CallInfo) {
			mu.Lock()
			defer mu.Unlock()
			if info.Err != nil {
				failed = append(failed, info.Err)
			}
		}})},
	})
	if err != nil {
		t.Fatal(err)
	}
	serveGateway(t, g)
	methods := func() int {
		for _, s := range g.Stats().Services {
			return len(s.Methods)
		}
		return 0
	}
	awaitThat(t, "the methods of the service are not known", func() bool { return methods() > 0 })
	before := methods()
	serve(t, r, registry.Instance{Service: "arith", ID: "two", Version: "2"}, func(s *anser.Server) {
		arith(s)
		anser.Handle(s, "Arith.Neg", func(_ context.Context, in *int) (*int, error) { return in, nil })
	})
	awaitThat(t, "the methods of the new instance are not known", func() bool { return methods() > before })
	mu.Lock()
	defer mu.Unlock()
	if len(failed) > 0 {
		t.Errorf("failed: %v", failed)
	}
}

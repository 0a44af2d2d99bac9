package anser_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
)

// hurried is a resolver with one unreachable instance. It records requests to refresh.
type hurried struct {
	address string
	told    chan string
}

func (h *hurried) Watch(ctx context.Context, service string, update func([]registry.Instance), _ func(error)) error {
	update([]registry.Instance{{Service: service, Address: h.address}})
	<-ctx.Done()
	return ctx.Err()
}

func (h *hurried) Refresh(service string) {
	select {
	case h.told <- service:
	default:
	}
}

// A client without a reachable instance asks its resolver to refresh.
func TestRefreshWhenNobodyCanBeReached(t *testing.T) {
	h := &hurried{address: "a:1", told: make(chan string, 1)}
	scheme := registry.Scheme{Name: "slowly", Open: func(*url.URL) (registry.Resolver, string, error) { return h, "arith", nil }}
	c, err := anser.Dial("slowly:///arith", scheme, anser.NoSnapshot(), anser.Dialer(new(ansertest.Network).Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go anser.Call[struct{}](ctx, c, "Arith.Mul", &struct{}{})
	select {
	case service := <-h.told:
		if service != "arith" {
			t.Errorf("told to look for %q", service)
		}
	case <-time.After(time.Minute):
		t.Error("the resolver is not told that nobody can be reached")
	}
}

package anser_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
)

// book is a registrar that keeps what it was told, and like a real one heeds the context.
type book struct {
	mu    sync.Mutex
	there map[string]registry.Instance
	fail  error // of Register
	tries int
}

func (b *book) Register(ctx context.Context, in registry.Instance) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries++
	if err := errors.Join(ctx.Err(), in.Validate(), b.fail); err != nil {
		return err
	}
	if b.there == nil {
		b.there = make(map[string]registry.Instance)
	}
	b.there[in.Key()] = in
	return nil
}

func (b *book) Deregister(ctx context.Context, in registry.Instance) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	delete(b.there, in.Key())
	return nil
}

func (b *book) instances() []registry.Instance {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []registry.Instance
	for _, in := range b.there {
		list = append(list, in)
	}
	registry.Sort(list)
	return list
}

func TestCloseTakesTheRegistrationBack(t *testing.T) {
	network, b := new(ansertest.Network), new(book)
	s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.Announce(b, registry.Instance{Service: "echo"}))
	eventually(t, "registered", func() bool { return len(b.instances()) == 1 })
	s.Close()
	if list := b.instances(); len(list) != 0 {
		t.Errorf("still registered: %v", list)
	}
}

// Whatever comes first, Serve or Shutdown: nothing stays registered.
func TestShutdownWhileServeBegins(t *testing.T) {
	for range 300 {
		network, b := new(ansertest.Network), new(book)
		s := anser.NewServer(silent, anser.Announce(b, registry.Instance{Service: "echo"}))
		l := network.Listen("a:1")
		var wg sync.WaitGroup
		wg.Go(func() { s.Serve(l) })
		wg.Go(func() { s.Shutdown(context.Background()) })
		wg.Wait()
		if list := b.instances(); len(list) != 0 {
			t.Fatalf("still registered: %v", list)
		}
	}
}

func TestAnnounceMistakes(t *testing.T) {
	for want, opt := range map[string]anser.ServerOption{
		"anser.Announce: the registrar is nil":                   anser.Announce(nil, registry.Instance{Service: "echo"}),
		"anser.Announce: the service has no name: give one":      anser.Announce(new(book), registry.Instance{}),
		`anser.Announce: address "a" has no port: use host:port`: anser.Announce(new(book), registry.Instance{Service: "echo", Address: "a"}),
	} {
		s := anser.NewServer(silent, opt)
		l := new(ansertest.Network).Listen("a:1")
		if err := s.Serve(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
		s.Close()
	}
}

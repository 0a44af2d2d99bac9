package upkeep_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// backend is a registry in memory.
type backend struct {
	mu      sync.Mutex // guards the fields below
	records map[string]string
	away    bool
	taken   bool // all keys belong to another process
	refuse  bool
	applied int
}

func (b *backend) Apply(_ context.Context, items []upkeep.Item) ([]error, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return nil, errAway
	}
	b.applied++
	results := make([]error, len(items))
	for i, item := range items {
		name := item.Service + "/" + item.Key
		switch {
		case b.refuse:
			results[i] = errRefused
		case b.taken && !item.Force:
			results[i] = upkeep.ErrTaken
		case item.Want == nil:
			delete(b.records, name)
		default:
			b.taken = false
			b.records[name] = item.Want.Address
		}
	}
	return results, nil
}

func (b *backend) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *backend) has(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := b.records["arith/one"]; got != want {
		t.Errorf("the registry has %q, want %q", got, want)
	}
}

func announcing(t *testing.T) (*backend, *upkeep.Announcer) {
	b := &backend{records: make(map[string]string)}
	a := upkeep.NewAnnouncer(b, 3*time.Second, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { a.Close() })
	return b, a
}

func one(address string) registry.Instance {
	return registry.Instance{ID: "one", Service: "arith", Address: address}
}

func TestAnnouncerKeepsWhatWasRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a := announcing(t)
		if err := a.Register(t.Context(), one("h1:1")); err != nil {
			t.Fatal(err)
		}
		b.change(func() { clear(b.records) })
		time.Sleep(3 * time.Second)
		b.has(t, "h1:1") // the renewal
		b.change(func() { b.away = true })
		time.Sleep(10 * time.Second)
		b.change(func() { clear(b.records); b.away = false })
		time.Sleep(time.Second) // the longest delay
		b.has(t, "h1:1")
		b.change(func() { b.records["arith/one"], b.taken = "theirs", true })
		time.Sleep(3 * time.Second)
		b.change(func() { clear(b.records); b.taken = false })
		time.Sleep(time.Minute)
		b.has(t, "") // it does not take the key back
		if err := a.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

func TestRegistrationThatFailsSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a := announcing(t)
		b.change(func() { b.away = true })
		reason := errors.New("lunch")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, reason)
		defer cancel()
		err := a.Register(ctx, one("h1:1"))
		if !errors.Is(err, reason) || !errors.Is(err, errAway) || !strings.HasPrefix(err.Error(), `register "one" of service "arith": `) {
			t.Errorf("Register without a server = %v, want the cause of its context and why", err)
		}
		b.change(func() { b.away, b.refuse = false, true })
		if err := a.Register(t.Context(), one("h1:1")); !errors.Is(err, errRefused) {
			t.Errorf("Register = %v, want that it is refused", err)
		}
		b.change(func() { b.refuse = false })
		time.Sleep(time.Minute)
		b.has(t, "")
		if err := a.Register(t.Context(), one("")); err == nil {
			t.Error("an instance without an address is taken")
		}
	})
}

func TestAnnouncerWithdrawsAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, a := announcing(t)
		if err := a.Register(t.Context(), one("h1:1")); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		b.has(t, "")
		if err := a.Close(); err != nil {
			t.Errorf("the second Close = %v", err)
		}
		if err := a.Register(t.Context(), one("h1:1")); err != registry.ErrClosed {
			t.Errorf("Register after Close = %v", err)
		}
		if err := a.Deregister(t.Context(), one("h1:1")); err != registry.ErrClosed {
			t.Errorf("Deregister after Close = %v", err)
		}

		b, a = announcing(t)
		if err := a.Register(t.Context(), one("h1:1")); err != nil {
			t.Fatal(err)
		}
		b.change(func() { b.away = true })
		began := time.Now()
		if err := a.Close(); !errors.Is(err, errAway) || !strings.HasPrefix(err.Error(), "withdraw instances (they expire ") {
			t.Errorf("Close without a server = %v", err)
		}
		if took := time.Since(began); took > 5*time.Second { // on the fake clock
			t.Errorf("Close without a server took %v", took)
		}
	})
}

package regtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// Watch holds the calls of a watch of the service arith, in order.
type Watch struct {
	Lists    chan string // in the form of brief
	Troubles chan error
	Ended    chan error // the result of Watch
	t        testing.TB
}

// NewWatch watches the service arith until the test ends. Lists are compared in the form of Brief.
func NewWatch(t testing.TB, r registry.Resolver) *Watch { return NewWatchOf(t, r, Brief) }

// NewWatchOf is like NewWatch, for tests that compare more than the addresses of the instances.
func NewWatchOf(t testing.TB, r registry.Resolver, brief func([]registry.Instance) string) *Watch {
	w := &Watch{make(chan string, 1000), make(chan error, 1000), make(chan error, 1), t}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Ended <- r.Watch(ctx, service, func(list []registry.Instance) { w.Lists <- brief(list) }, func(err error) { w.Troubles <- err })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

// Await waits for a list, and skips others.
func (w *Watch) Await(want string) {
	w.t.Helper()
	late := time.After(Patience)
	for got := "none"; got != want; {
		select {
		case got = <-w.Lists:
		case <-late:
			w.t.Fatalf("no list %q within %v, the last is %q", want, Patience, got)
		}
	}
}

// Seen reports whether the list has arrived, and removes it and those before it.
func (w *Watch) Seen(want string) bool {
	for len(w.Lists) > 0 {
		if <-w.Lists == want {
			return true
		}
	}
	return false
}

// Expect waits for the next list, and checks that it equals want.
func (w *Watch) Expect(want string) {
	w.t.Helper()
	select {
	case got := <-w.Lists:
		if got != want {
			w.t.Fatalf("got the list %q, want %q", got, want)
		}
	case <-time.After(Patience):
		w.t.Fatalf("no list within %v, want %q", Patience, want)
	}
}

// Only checks that no other list arrived meanwhile.
func (w *Watch) Only(lists ...string) {
	w.t.Helper()
	for len(w.Lists) > 0 {
		if got := <-w.Lists; !slices.Contains(lists, got) {
			w.t.Fatalf("got the list %q, want none but %q", got, lists)
		}
	}
}

// AwaitTrouble waits for trouble that contains the text, and skips other trouble.
func (w *Watch) AwaitTrouble(text string) {
	w.t.Helper()
	late := time.After(Patience)
	last := error(nil)
	for {
		select {
		case last = <-w.Troubles:
			if strings.Contains(last.Error(), text) {
				return
			}
		case <-late:
			w.t.Fatalf("no trouble with %q within %v, the last is %v", text, Patience, last)
		}
	}
}

// ExpectTrouble waits for the next trouble, and checks that it contains the text.
func (w *Watch) ExpectTrouble(text string) {
	w.t.Helper()
	select {
	case err := <-w.Troubles:
		if !strings.Contains(err.Error(), text) {
			w.t.Errorf("got the trouble %v, want some with %q", err, text)
		}
	case <-time.After(Patience):
		w.t.Fatalf("no trouble within %v, want some with %q", Patience, text)
	}
}

// NoTrouble checks that no trouble was reported since the last check.
func (w *Watch) NoTrouble() {
	w.t.Helper()
	select {
	case err := <-w.Troubles:
		w.t.Errorf("trouble although the registry was available all the time: %v", err)
	default:
	}
}

package regtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// Watch is what a watcher of the service arith was told, in order.
type Watch struct {
	Lists    chan string // as brief gives them
	Troubles chan error
	Ended    chan error // what Watch returned
	t        testing.TB
}

// NewWatch watches the service arith until the test ends. Lists are compared as Brief gives them.
func NewWatch(t testing.TB, r registry.Resolver) *Watch { return NewWatchOf(t, r, Brief) }

// NewWatchOf is NewWatch for tests that look at more of instances than their addresses.
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

// Await waits for a list, past others.
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

// Seen reports whether a list has come, and forgets it and those before.
func (w *Watch) Seen(want string) bool {
	for len(w.Lists) > 0 {
		if <-w.Lists == want {
			return true
		}
	}
	return false
}

// Expect waits for the next list, and makes sure that it is this one.
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

// Only makes sure that no list came meanwhile but such as these.
func (w *Watch) Only(lists ...string) {
	w.t.Helper()
	for len(w.Lists) > 0 {
		if got := <-w.Lists; !slices.Contains(lists, got) {
			w.t.Fatalf("got the list %q, want none but %q", got, lists)
		}
	}
}

// AwaitTrouble waits for trouble that has the text in it, past other trouble.
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

// ExpectTrouble waits for the next trouble, and makes sure that it has the text in it.
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

// NoTrouble makes sure that there was none, of late.
func (w *Watch) NoTrouble() {
	w.t.Helper()
	select {
	case err := <-w.Troubles:
		w.t.Errorf("trouble although the registry was there all the time: %v", err)
	default:
	}
}

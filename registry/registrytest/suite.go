package registrytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/awake"
	"github.com/anser-rpc/anser/registry"
)

// suite is one running test with its fixture and the common helpers.
type suite struct {
	*testing.T
	Fixture

	opened   []registry.Registry
	watchers []*watcher
	ending   []func() // called at the end of the test
}

// open returns another registry on the fixture, which is closed at the end of the test.
func (s *suite) open() registry.Registry {
	r := s.Open()
	s.opened = append(s.opened, r)
	return r
}

// closeAll ends the watches and closes the registries that the test has left open.
func (s *suite) closeAll() {
	for _, w := range s.watchers {
		w.stop()
	}
	for _, f := range s.ending {
		f()
	}
	for _, r := range s.opened {
		if err := r.Close(); err != nil {
			s.Errorf("Close at the end of the test: %v", err)
		}
	}
}

// context returns a context with the suite's patience as its timeout.
func (s *suite) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.Patience)
}

func (s *suite) register(r registry.Registrar, in registry.Instance) {
	s.Helper()
	ctx, cancel := s.context()
	defer cancel()
	if err := r.Register(ctx, in); err != nil {
		s.Fatalf("Register(%+v): %v", in, err)
	}
}

func (s *suite) deregister(r registry.Registrar, in registry.Instance) {
	s.Helper()
	ctx, cancel := s.context()
	defer cancel()
	if err := r.Deregister(ctx, in); err != nil {
		s.Fatalf("Deregister(%+v): %v", in, err)
	}
}

// await waits until List returns exactly want.
func (s *suite) await(r registry.Resolver, service string, want ...registry.Instance) {
	s.Helper()
	registry.Sort(want)
	ctx, cancel := s.context()
	defer cancel()
	for {
		got, err := registry.List(ctx, r, service)
		if err == nil && registry.Equal(got, want) {
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("%s: after %v\n got %s (error %v)\nwant %s", service, s.Patience, brief(got), err, brief(want))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// awaitServices waits until Services returns exactly want.
func (s *suite) awaitServices(r registry.Lister, want ...string) {
	s.Helper()
	ctx, cancel := s.context()
	defer cancel()
	for {
		got, err := r.Services(ctx)
		if err == nil && slices.Equal(got, want) {
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("services after %v: got %q (error %v), want %q", s.Patience, got, err, want)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// within fails the test if f takes longer than d, not counting pauses of the machine.
func (s *suite) within(d time.Duration, what string, f func()) {
	s.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	for clock := awake.Start(); ; {
		select {
		case <-done:
			clock.Stop()
			return
		case <-time.After(20 * time.Millisecond):
		}
		if clock.Elapsed() > d {
			s.Fatalf("%s has not returned after %v", what, clock.Stop())
		}
	}
}

// watcher records the callbacks of one Watch, and checks the rules for every Watch: one callback
// at a time, lists that are sorted, valid and different from the previous one, nothing after the
// end.
type watcher struct {
	t       *testing.T
	service string
	cancel  context.CancelFunc
	done    chan struct{} // closed when Watch has returned

	mu       sync.Mutex // guards the fields below
	busy     bool
	lists    [][]registry.Instance
	troubles []error
	troubled bool // trouble since the last update
	err      error
	ended    bool
	wake     chan struct{} // closed and replaced by each callback
}

// watch starts a Watch that runs until the end of the test. hook, which may be nil, is called
// within update.
func (s *suite) watch(r registry.Resolver, service string, hook func([]registry.Instance)) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{t: s.T, service: service, cancel: cancel, done: make(chan struct{}), wake: make(chan struct{})}
	s.watchers = append(s.watchers, w)
	go func() {
		defer close(w.done)
		err := r.Watch(ctx, service, func(list []registry.Instance) {
			w.begin()
			if hook != nil {
				hook(list)
			}
			w.updated(list)
		}, w.trouble)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err, w.ended = err, true
	}()
	return w
}

func (w *watcher) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy || w.ended {
		w.t.Errorf("%s: update called while another callback runs (%v) or after Watch returned (%v)", w.service, w.busy, w.ended)
	}
	w.busy = true
}

func (w *watcher) updated(list []registry.Instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := checkList(w.service, list); err != nil {
		w.t.Error(err)
	}
	if n := len(w.lists); n > 0 && !w.troubled && registry.Equal(list, w.lists[n-1]) {
		w.t.Errorf("%s: update twice with the same list: %s", w.service, brief(list))
	}
	w.lists = append(w.lists, list)
	w.busy, w.troubled = false, false
	w.signalLocked()
}

func (w *watcher) trouble(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy || w.ended {
		w.t.Errorf("%s: trouble called while update runs (%v) or after Watch returned (%v)", w.service, w.busy, w.ended)
	}
	if err == nil {
		w.t.Errorf("%s: trouble without an error", w.service)
	}
	w.troubles = append(w.troubles, err)
	w.troubled = true
	w.signalLocked()
}

func (w *watcher) signalLocked() {
	close(w.wake)
	w.wake = make(chan struct{})
}

// awaitState waits until ok returns true; ok may read what was recorded.
func (w *watcher) awaitState(patience time.Duration, what string, ok func() bool) {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		good, wake := ok(), w.wake
		last, n := w.lastLocked(), len(w.lists)
		troubles := len(w.troubles)
		w.mu.Unlock()
		if good {
			return
		}
		select {
		case <-wake:
		case <-deadline:
			w.t.Fatalf("%s: %s not seen after %v; %d updates, %d troubles, last list %s", w.service, what, patience, n, troubles, brief(last))
		}
	}
}

// await waits until the last list is exactly want.
func (w *watcher) await(patience time.Duration, want ...registry.Instance) {
	w.t.Helper()
	registry.Sort(want)
	w.awaitState(patience, "list "+brief(want), func() bool {
		return len(w.lists) > 0 && registry.Equal(w.lastLocked(), want)
	})
}

func (w *watcher) lastLocked() []registry.Instance {
	if len(w.lists) == 0 {
		return nil
	}
	return w.lists[len(w.lists)-1]
}

// counts returns the number of updates and of troubles so far.
func (w *watcher) counts() (updates, troubles int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lists), len(w.troubles)
}

// awaitEnd waits for Watch to return, and returns its error.
func (w *watcher) awaitEnd(patience time.Duration) error {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(patience):
		w.t.Fatalf("%s: Watch has not returned after %v", w.service, patience)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// stop cancels the watch's context and checks that Watch returns its error, unless it ended
// before.
func (w *watcher) stop() {
	select {
	case <-w.done:
		return
	default:
	}
	w.cancel()
	<-w.done
	if !errors.Is(w.err, context.Canceled) {
		w.t.Errorf("%s: Watch ended with %v, want the context's error", w.service, w.err)
	}
}

// checkList returns an error if a list of the service is invalid.
func checkList(service string, list []registry.Instance) error {
	for i, in := range list {
		if err := in.Validate(); err != nil {
			return err
		}
		if in.Service != service {
			return fmt.Errorf("%s: got an instance of service %q", service, in.Service)
		}
		if i > 0 && list[i-1].Key() >= in.Key() {
			return fmt.Errorf("%s: %q comes before %q: want the list sorted, each key once", service, list[i-1].Key(), in.Key())
		}
	}
	return nil
}

// brief formats a list for a message.
func brief(list []registry.Instance) string {
	if len(list) > 5 {
		return fmt.Sprintf("%d instances from %+v to %+v", len(list), list[0], list[len(list)-1])
	}
	return fmt.Sprintf("%+v", list)
}

// numbered returns an instance of the service with an address derived from n, at most 65,535.
func numbered(service string, n int) registry.Instance {
	return registry.Instance{Service: service, Address: fmt.Sprintf("10.1.%d.%d:8972", n/256, n%256)}
}

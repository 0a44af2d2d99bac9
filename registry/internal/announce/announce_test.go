package announce_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/announce"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errAway    = errors.New("away")
	errRefused = errors.New("refused")
)

// store is a server in memory.
type store struct {
	mu      sync.Mutex // guards the fields below
	records map[string]string
	theirs  map[string]bool // keys that another process has taken
	away    bool
	fresh   bool // the next Begin reports that all records are lost
	refuse  map[string]bool
	writes  int
}

func (s *store) Begin(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return false, errAway
	}
	fresh := s.fresh
	s.fresh = false
	return fresh, nil
}

func (s *store) Renew(_ context.Context, key string, in *registry.Instance) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.theirs[key] && s.records[key] == in.Address, nil
}

func (s *store) Write(_ context.Context, key string, in *registry.Instance, force bool) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	switch {
	case s.away:
		return false, errAway
	case s.refuse[key] && in != nil:
		return false, errRefused
	case s.theirs[key] && !force:
		return true, nil
	case in == nil:
		delete(s.records, key)
		return false, nil
	}
	delete(s.theirs, key)
	s.records[key] = in.Address
	return false, nil
}

func (s *store) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *store) has(t *testing.T, key, want string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.records[key]; got != want {
		t.Errorf("the server has %q under %q, want %q", got, key, want)
	}
}

func start(t *testing.T) (*store, *announce.Announcer) {
	s := &store{records: make(map[string]string), theirs: make(map[string]bool), refuse: make(map[string]bool)}
	a := announce.New(announce.Config{
		Store: s, Every: 3 * time.Second, Log: slog.New(slog.DiscardHandler),
		Hopeless: func(err error) bool { return errors.Is(err, errRefused) },
	})
	t.Cleanup(func() { a.Close() })
	return s, a
}

func at(address string) registry.Instance {
	return registry.Instance{Service: "arith", Address: address}
}

func put(t *testing.T, a *announce.Announcer, key, address string) {
	t.Helper()
	if err := a.Register(t.Context(), key, at(address)); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsLostIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := start(t)
		put(t, a, "one", "h1:1")
		s.change(func() { clear(s.records) })
		time.Sleep(3 * time.Second)
		s.has(t, "one", "h1:1") // the heartbeat found it missing
		s.change(func() { clear(s.records); s.fresh = true })
		put(t, a, "two", "h2:1")
		s.has(t, "one", "h1:1") // a write for another record found the session lost
		s.change(func() { s.writes = 0 })
		time.Sleep(time.Minute)
		s.change(func() {
			if s.writes > 0 {
				t.Errorf("%d writes although nothing was missing", s.writes)
			}
		})
	})
}

func TestRecordOfAnotherIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := start(t)
		put(t, a, "one", "h1:1")
		s.change(func() { s.theirs["one"], s.records["one"] = true, "theirs" })
		time.Sleep(3 * time.Second)
		s.has(t, "one", "theirs")
		s.change(func() { delete(s.theirs, "one"); delete(s.records, "one"); s.fresh = true })
		time.Sleep(time.Minute)
		s.has(t, "one", "") // there is no owner now, and this process does not take the key back
		s.change(func() { s.theirs["one"] = true })
		put(t, a, "one", "h1:1") // until a caller registers it again
		s.has(t, "one", "h1:1")
	})
}

func TestCallThatRunsOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := start(t)
		put(t, a, "one", "h1:1")
		s.change(func() { s.away = true })
		for key, in := range map[string]registry.Instance{"one": at("h2:1"), "two": at("h3:1")} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := a.Register(ctx, key, in); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errAway) {
				t.Errorf("Register without a server = %v, want the context's error and why", err)
			}
		}
		s.change(func() { s.away = false; clear(s.records) })
		time.Sleep(10 * time.Second)
		s.has(t, "one", "h1:1") // the previous record
		s.has(t, "two", "")
	})
}

func TestRemovalThatRunsOutOfTimeComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := start(t)
		put(t, a, "one", "h1:1")
		s.change(func() { s.away = true })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := a.Deregister(ctx, "one", at("h1:1")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Deregister without a server = %v, want the context's error", err)
		}
		s.change(func() { s.away = false })
		time.Sleep(10 * time.Second)
		s.has(t, "one", "")
	})
}

func TestRefusedRecordFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := start(t)
		put(t, a, "one", "h1:1")
		s.change(func() { s.refuse["one"], s.refuse["two"] = true, true })
		for _, key := range []string{"one", "two"} {
			if err := a.Register(t.Context(), key, at("h2:1")); !errors.Is(err, errRefused) {
				t.Errorf("Register(%q) = %v, want that it is refused", key, err)
			}
		}
		put(t, a, "three", "h3:1")
		s.has(t, "one", "h1:1")
		s.change(func() { clear(s.refuse); clear(s.records) })
		time.Sleep(10 * time.Second)
		s.has(t, "one", "h1:1")
		s.has(t, "two", "")
	})
}

func TestRefusalAfterALossLeavesWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := start(t)
		put(t, a, "one", "h1:1")
		synctest.Wait() // end the round, so that the next one starts with the loss
		s.change(func() { clear(s.records); s.fresh, s.refuse["one"] = true, true })
		if err := a.Register(t.Context(), "one", at("h2:1")); !errors.Is(err, errRefused) {
			t.Errorf("Register = %v, want that it is refused", err)
		}
		s.change(func() { clear(s.refuse) })
		time.Sleep(10 * time.Second)
		s.has(t, "one", "h1:1")
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := start(t)
		put(t, a, "one", "h1:1")
		put(t, a, "two", "h2:1")
		if err := a.Deregister(t.Context(), "two", at("h2:1")); err != nil {
			t.Fatal(err)
		}
		s.change(func() { s.away = true })
		waiting := make(chan error, 1)
		go func() { waiting <- a.Register(t.Context(), "three", at("h3:1")) }()
		synctest.Wait()
		if keys := a.Close(); !slices.Equal(keys, []string{"one", "three"}) {
			t.Errorf("Close leaves %q, want what is or may be there", keys)
		}
		if err := <-waiting; !errors.Is(err, registry.ErrClosed) {
			t.Errorf("Register across Close = %v, want ErrClosed", err)
		}
		if err := a.Register(t.Context(), "four", at("h4:1")); !errors.Is(err, registry.ErrClosed) {
			t.Errorf("Register after Close = %v, want ErrClosed", err)
		}
	})
}

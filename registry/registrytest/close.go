package registrytest

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/registry"
)

var closeCases = []testCase{
	{"CloseWithdraws", Announcing, closeWithdraws},
	{"CloseIsIdempotent", Announcing, closeIsIdempotent},
	{"CloseDuringCalls", Announcing, closeDuringCalls},
	{"UseAfterClose", Announcing, useAfterClose},
	{"CloseLeaksNothing", Announcing, closeLeaksNothing},
}

func closeWithdraws(s *suite) {
	r, other := s.open(), s.open()
	a, b, theirs := numbered("arith", 1), numbered("arith", 2), numbered("arith", 3)
	s.register(r, a)
	s.register(r, b)
	s.register(r, numbered("echo", 1))
	s.register(other, theirs)
	w := s.watch(other, "arith", nil)
	w.await(s.Patience, a, b, theirs)
	if err := r.Close(); err != nil {
		s.Fatal(err)
	}
	w.await(s.Patience, theirs)
	s.await(other, "echo")
	s.awaitServices(other, "arith")
}

func closeIsIdempotent(s *suite) {
	r := s.open()
	s.register(r, numbered("arith", 1))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := r.Close(); err != nil {
				s.Errorf("Close: %v", err)
			}
		})
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		s.Errorf("Close once more: %v", err)
	}
	if err := s.open().Close(); err != nil { // never used
		s.Errorf("Close of an unused registry: %v", err)
	}
}

func closeDuringCalls(s *suite) {
	r, other := s.open(), s.open()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				in := numbered("arith", i)
				in.Weight = n%100 + 1
				err := r.Register(context.Background(), in)
				if errors.Is(err, registry.ErrClosed) {
					return
				}
				if err != nil {
					s.Errorf("Register while closing = %v, want nil or ErrClosed", err)
					return
				}
			}
		})
	}
	w := s.watch(r, "arith", nil)
	w.awaitState(s.Patience, "a list with instances", func() bool { return len(w.lastLocked()) > 0 })
	if err := r.Close(); err != nil {
		s.Fatal(err)
	}
	s.within(s.Patience, "Register after Close", wg.Wait)
	if err := w.awaitEnd(s.Patience); !errors.Is(err, registry.ErrClosed) {
		s.Errorf("Watch of the closed registry ended with %v, want ErrClosed", err)
	}
	s.await(other, "arith") // no registration succeeded after Close
}

func useAfterClose(s *suite) {
	r := s.open()
	if err := r.Close(); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := s.context()
	defer cancel()
	in := numbered("arith", 1)
	never := func([]registry.Instance) { s.Error("update from a closed registry") }
	_, listing := r.Services(ctx)
	errs := map[string]error{
		"Register":   r.Register(ctx, in),
		"Deregister": r.Deregister(ctx, in),
		"Watch":      r.Watch(ctx, "arith", never, nil),
		"Services":   listing,
	}
	for name, err := range errs {
		if !errors.Is(err, registry.ErrClosed) {
			s.Errorf("%s after Close = %v, want ErrClosed", name, err)
		}
	}
}

func closeLeaksNothing(s *suite) {
	s.useAndClose() // everything that is created once and kept is created now
	goroutines, files := goleak.IgnoreCurrent(), openFiles()
	for range 5 {
		s.useAndClose()
	}
	s.checkGoroutines(goroutines)
	if s.ServerInside {
		return
	}
	for limit := time.After(s.Patience); ; {
		now := openFiles()
		if now <= files {
			return
		}
		select {
		case <-limit:
			s.Fatalf("%d file descriptors before, %d after five registries were opened and closed", files, now)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *suite) useAndClose() {
	r := s.open()
	w := s.watch(r, "arith", nil)
	s.register(r, numbered("arith", 1))
	w.await(s.Patience, numbered("arith", 1))
	if err := r.Close(); err != nil {
		s.Fatal(err)
	}
	w.awaitEnd(s.Patience)
}

// openFiles returns the number of open file descriptors, or 0 on systems without /proc.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

package registrytest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/internal/awake"
	"github.com/anser-rpc/anser/registry"
)

var outageCases = []testCase{
	{"OutageKeepsTheList", Outages, outageKeepsTheList},
	{"RegisterDuringOutage", Outages, registerDuringOutage},
	{"OpenDuringOutage", Outages, openDuringOutage},
	{"CloseDuringOutage", Outages, closeDuringOutage},
}

var leaseCases = []testCase{
	{"LostLeaseIsFoundAgain", Leases, lostLeaseIsFoundAgain},
	{"ForgottenTwice", Leases, forgottenTwice},
}

// leaseBar is how long a lost record may be missing, not counting pauses of the machine.
const leaseBar = 5 * time.Second

// losses is the number of attempts to meet leaseBar.
const losses = 3

// quickly bounds operations that must not wait for the server, not counting pauses of the machine.
const quickly = 5 * time.Second

func outageKeepsTheList(s *suite) {
	server, client := s.open(), s.open()
	var want []registry.Instance
	for i := range 3 {
		want = append(want, numbered("arith", i))
		s.register(server, want[i])
	}
	w := s.watch(client, "arith", nil)
	w.await(s.Patience, slices.Clone(want)...)
	updates, troubles := w.counts()

	s.Stop()
	w.awaitState(s.Patience, "trouble", func() bool { return len(w.troubles) > troubles })
	if now, _ := w.counts(); now != updates {
		s.Errorf("%d updates while the registry was away, want none", now-updates)
	}
	s.Start()
	w.awaitState(s.Patience, "an update that ends the trouble", func() bool { return len(w.lists) > updates && !w.troubled })
	late := numbered("arith", 7)
	s.register(server, late)
	w.await(s.Patience, append(slices.Clone(want), late)...)

	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range w.lists[updates:] {
		for _, in := range want {
			if !slices.ContainsFunc(list, in.Equal) {
				s.Errorf("the watcher lost an instance in the outage: %s", brief(list))
			}
		}
	}
}

func registerDuringOutage(s *suite) {
	r, other := s.open(), s.open()
	before, during, given := numbered("arith", 1), numbered("arith", 2), numbered("arith", 3)
	s.register(r, before)
	s.Stop()

	registered := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 3*s.Patience)
	defer cancel()
	go func() { registered <- r.Register(ctx, during) }()

	s.timesOut("Register", func(ctx context.Context) error { return r.Register(ctx, given) })
	s.Start()
	select {
	case err := <-registered:
		if err != nil {
			s.Fatalf("Register across the outage: %v", err)
		}
	case <-time.After(2 * s.Patience):
		s.Fatal("Register has not returned although the server is back")
	}
	s.await(other, "arith", before, during)
}

// timesOut checks that a call without a server ends with its context, with its error, and with the
// cause. On a busy machine it may need more than a second to learn the cause.
func (s *suite) timesOut(what string, call func(context.Context) error) {
	s.Helper()
	for limit := time.Second; ; limit *= 2 {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		var err error
		s.within(limit+quickly, what+" with a short context", func() { err = call(ctx) })
		cancel()
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			s.Errorf("%s without a server = %v, want the context's error", what, err)
			return
		case !strings.HasSuffix(err.Error(), context.DeadlineExceeded.Error()):
			return
		case limit > s.Patience:
			s.Errorf("%s without a server = %v after %v, want the cause, too", what, err, limit)
			return
		}
	}
}

func openDuringOutage(s *suite) {
	s.Stop()
	var r registry.Registry
	s.within(quickly, "opening", func() { r = s.open() })
	s.timesOut("List", func(ctx context.Context) error {
		_, err := registry.List(ctx, r, "arith")
		return err
	})
	w := s.watch(r, "arith", nil)
	w.awaitState(s.Patience, "trouble", func() bool { return len(w.troubles) > 0 })
	if updates, _ := w.counts(); updates > 0 {
		s.Error("update although the server was never there")
	}
	s.Start()
	w.await(s.Patience)
	s.register(s.open(), numbered("arith", 1))
	w.await(s.Patience, numbered("arith", 1))
}

func closeDuringOutage(s *suite) {
	r, other := s.open(), s.open()
	s.register(r, numbered("arith", 1))
	w := s.watch(r, "arith", nil)
	w.await(s.Patience, numbered("arith", 1))
	s.Stop()
	s.within(quickly, "Close without a server", func() { r.Close() })
	if err := w.awaitEnd(s.Patience); !errors.Is(err, registry.ErrClosed) {
		s.Errorf("Watch of the closed registry ended with %v, want ErrClosed", err)
	}
	s.Start()
	if s.ForgetLeases != nil {
		s.await(other, "arith") // the lease expires
	}
}

func lostLeaseIsFoundAgain(s *suite) {
	server, client := s.open(), s.open()
	var want []registry.Instance
	for i := range 3 {
		want = append(want, numbered("arith", i))
		s.register(server, want[i])
	}
	gone := numbered("arith", 9)
	s.register(server, gone)
	s.deregister(server, gone)
	w := s.watch(client, "arith", nil)
	w.await(s.Patience, slices.Clone(want)...)
	s.foundAgain(client, want...)
	w.await(s.Patience, slices.Clone(want)...)
	if err := server.Close(); err != nil { // withdraws the instances of the new lease
		s.Fatal(err)
	}
	w.await(s.Patience)
}

// forgottenTwice also changes an instance while its lease is lost.
func forgottenTwice(s *suite) {
	server, client := s.open(), s.open()
	in := numbered("arith", 1)
	s.register(server, in)
	s.ForgetLeases()
	in.Weight = 7
	s.register(server, in)
	s.await(client, "arith", in)
	s.foundAgain(client, in)
}

// foundAgain makes the server drop all leases, and checks that the announced instances are back,
// each record once, within leaseBar. That limit concerns the schedule of the registry: the clock
// does not run while the machine is paused. A delay of a server in another process, or of its
// disk, still counts, so only one of several attempts must be within the limit, though all must
// succeed. A schedule that is too slow fails all of them, since each attempt begins right after a
// write of the registry.
func (s *suite) foundAgain(r registry.Resolver, want ...registry.Instance) {
	s.Helper()
	var took []time.Duration
	for range losses {
		s.ForgetLeases()
		took = append(took, s.timed(func() { s.await(r, "arith", slices.Clone(want)...) }))
		if took[len(took)-1] <= leaseBar {
			return
		}
	}
	s.Errorf("lost records were away for %v: want them back within %v", took, leaseBar)
}

// timed returns how long f takes, not counting pauses of the machine.
func (s *suite) timed(f func()) time.Duration {
	clock := awake.Start()
	defer clock.Stop() // even if f ends the test
	f()
	return clock.Elapsed()
}

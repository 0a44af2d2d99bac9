package registrytest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

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

// leaseBar is how long a lost record may be away.
const leaseBar = 5 * time.Second

// quickly is how long something may take that must not wait for the server.
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
				s.Errorf("the outage cost the watcher an instance: %s", brief(list))
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

	short, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	s.within(quickly, "Register with a short context", func() {
		s.checkTimeout("Register", r.Register(short, given))
	})
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

// checkTimeout makes sure that the error of a call that ran out of time says so, and then why.
func (s *suite) checkTimeout(call string, err error) {
	s.Helper()
	if !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("%s without a server = %v, want the context's error", call, err)
	} else if strings.HasSuffix(err.Error(), context.DeadlineExceeded.Error()) {
		s.Errorf("%s without a server = %v, want to be told why too", call, err)
	}
}

func openDuringOutage(s *suite) {
	s.Stop()
	var r registry.Registry
	s.within(quickly, "opening", func() { r = s.open() })
	short, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	s.within(quickly, "List with a short context", func() {
		_, err := registry.List(short, r, "arith")
		s.checkTimeout("List", err)
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
		s.await(other, "arith") // the lease runs out
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
	s.ForgetLeases()
	patience := s.Patience
	s.Patience = leaseBar
	s.await(client, "arith", slices.Clone(want)...)
	s.Patience = patience
	w.await(s.Patience, slices.Clone(want)...)
	if err := server.Close(); err != nil { // withdraws what the new lease holds
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
	s.ForgetLeases()
	s.Patience = leaseBar
	s.await(client, "arith", in)
}

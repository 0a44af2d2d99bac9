// Package registrytest is the suite that every registry passes: what package registry promises,
// as tests. An implementation calls Run from a test of its own, on a real server where there is
// one. What it cannot do it has to say, as a Capability.
package registrytest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/registry"
)

// Capability is a part of the suite that not every registry can take.
type Capability string

// The capabilities.
const (
	// Announcing: instances can be registered. A fixed list cannot; it gives Fixture.Resolver.
	Announcing Capability = "announcing"
	// Listing: the services that have instances can be named. Only a registry without Announcing may lack it.
	Listing Capability = "listing"
	// Outages: there is a server that can stop and start again with its data.
	Outages Capability = "outages"
	// Documents: the registry is a registry.Store.
	Documents Capability = "documents"
	// Leases: what a process announced goes away when the process does not renew it.
	Leases Capability = "leases"
)

// Fixture is what one test of the suite runs on: a registry that is empty, unless Instances say
// otherwise, and that no other test uses. Whatever it started, it stops with t.Cleanup.
type Fixture struct {
	// Open returns a registry on the fixture's data, as another process would have it; it is
	// called many times and must not wait for a server. The suite closes what it opened.
	Open func() registry.Registry

	// Stop takes the server away without a goodbye, and Start brings it back with its data.
	Stop, Start func()

	// ForgetLeases makes the server drop all leases, with what was announced under them.
	ForgetLeases func()

	// Resolver is given instead of Open where Announcing is missing, with what it resolves to.
	Resolver  registry.Resolver
	Instances []registry.Instance

	// ServerInside says that the server runs inside the test. Its goroutines and files come and go, so
	// that a test cannot tell them from what a registry left behind: check at the end of all tests.
	ServerInside bool

	// HostPortOnly says that the registry keeps a host and a port: it refuses any other kind of address,
	// and says so.
	HostPortOnly bool

	// Many is how many instances are many; 0 means 1,000. Less is for a server that cannot do it in the time
	// that a test has.
	Many int

	// Patience is how long a test waits for a change to be seen, on a machine that may be busy; 0 means a minute.
	Patience time.Duration
}

// Run runs the suite, one subtest for each promise. setup makes the fixture of a subtest. lacks
// names the capabilities that the registry does not have; a fixture that has less than that, or
// more, fails.
func Run(t *testing.T, setup func(t *testing.T) Fixture, lacks ...Capability) {
	for _, c := range cases(lacks) {
		t.Run(c.name, func(t *testing.T) { runCase(t, c, setup, lacks) })
	}
}

// RunInBubble does what Run does inside testing/synctest bubbles, so that waiting takes no time:
// for registries that open no connection.
func RunInBubble(t *testing.T, setup func(t *testing.T) Fixture, lacks ...Capability) {
	for _, c := range cases(lacks) {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runCase(t, c, setup, lacks) })
		})
	}
}

// looks is how often goroutines are looked for that Close has left behind. A look sleeps twenty times, for half a second
// in all, in which one that was told to end may not have got to run.
const looks = 4

// testCase is one promise and the capability that a registry needs to be held to it.
type testCase struct {
	name  string
	needs Capability
	run   func(s *suite)
}

func cases(lacks []Capability) []testCase {
	all := slices.Concat(announceCases, watchCases, closeCases, outageCases, leaseCases, documentCases)
	if slices.Contains(lacks, Announcing) {
		all = slices.Clone(fixedCases)
	}
	return slices.DeleteFunc(all, func(c testCase) bool { return slices.Contains(lacks, c.needs) })
}

func runCase(t *testing.T, c testCase, setup func(t *testing.T) Fixture, lacks []Capability) {
	s := &suite{T: t, Fixture: setup(t)}
	s.checkFixture(lacks)
	if s.Patience == 0 {
		s.Patience = time.Minute
	}
	if s.Many == 0 {
		s.Many = 1000
	}
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { s.checkGoroutines(before) }) // after what the test has for t.Cleanup, and before setup's own
	defer s.closeAll()                              // also after Fatal, and before a fixture closes registries by t.Cleanup
	c.run(s)
}

func (s *suite) checkGoroutines(before goleak.Option) {
	s.Helper()
	if s.ServerInside {
		return
	}
	var err error
	for range looks {
		if err = goleak.Find(before); err == nil {
			return
		}
	}
	s.Errorf("Close left goroutines behind: %v", err)
}

// checkFixture makes sure that what is missing was said to be missing.
func (s *suite) checkFixture(lacks []Capability) {
	s.Helper()
	has := map[Capability]bool{
		Announcing: s.Open != nil,
		Outages:    s.Stop != nil && s.Start != nil,
		Leases:     s.ForgetLeases != nil,
	}
	for c, ok := range has {
		if lacking := slices.Contains(lacks, c); ok == lacking {
			s.Fatalf("fixture: capability %q is there: %v, said to be lacking: %v: make both agree", c, ok, lacking)
		}
	}
	if s.Open == nil && s.Resolver == nil {
		s.Fatal("fixture: has neither Open nor Resolver: give one")
	}
}

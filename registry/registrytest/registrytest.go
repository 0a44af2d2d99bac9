// Package registrytest is the conformance suite of registries: the contracts of package registry,
// as tests. An implementation calls Run from a test of its own, with a real server if it has one.
// The parts that it does not support are named by a Capability.
package registrytest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/registry"
)

// Capability is a part of the suite that not every registry supports.
type Capability string

// The capabilities.
const (
	// Announcing: instances can be registered. A fixed list lacks it and sets Fixture.Resolver.
	Announcing Capability = "announcing"
	// Listing: the registry can list the services that have instances. Only a registry without
	// Announcing may lack it.
	Listing Capability = "listing"
	// Outages: there is a server that can be stopped and started again with its data.
	Outages Capability = "outages"
	// Documents: the registry is a registry.Store.
	Documents Capability = "documents"
	// Leases: the instances of a process are removed when it no longer renews them.
	Leases Capability = "leases"
)

// Fixture is the environment of one test of the suite: a registry used by no other test, which is
// empty unless Instances is set. The resources of a fixture must be released with t.Cleanup.
type Fixture struct {
	// Open returns a registry on the fixture's data, like that of another process; it is called
	// many times and must not wait for a server. The suite closes the registries that it has
	// opened.
	Open func() registry.Registry

	// Stop stops the server abruptly, and Start starts it again with its data.
	Stop, Start func()

	// ForgetLeases makes the server drop all leases, with the instances announced under them.
	ForgetLeases func()

	// Resolver is set instead of Open by a registry without Announcing, together with its
	// instances.
	Resolver  registry.Resolver
	Instances []registry.Instance

	// ServerInside is set if the server runs inside the test process. A test cannot distinguish
	// the server's goroutines and files from those leaked by the registry: check for leaks at the
	// end of all tests instead.
	ServerInside bool

	// HostPortOnly is set if the registry can store only a host and a port: it must reject other
	// kinds of addresses with a helpful error.
	HostPortOnly bool

	// Many is the number of instances in tests with many of them; 0 means 1,000. Use a lower
	// number only for a server that is too slow for a test.
	Many int

	// Patience is how long a test waits for a change to become visible, on a machine that may be
	// busy; 0 means one minute.
	Patience time.Duration
}

// Run runs the suite, with one subtest per contract. setup creates the fixture of a subtest. lacks
// lists the capabilities that the registry does not support; Run fails if a fixture does not match
// it.
func Run(t *testing.T, setup func(t *testing.T) Fixture, lacks ...Capability) {
	for _, c := range cases(lacks) {
		t.Run(c.name, func(t *testing.T) { runCase(t, c, setup, lacks) })
	}
}

// RunInBubble is like Run, but runs inside testing/synctest bubbles, in which waiting takes no
// time: for registries that open no connections.
func RunInBubble(t *testing.T, setup func(t *testing.T) Fixture, lacks ...Capability) {
	for _, c := range cases(lacks) {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runCase(t, c, setup, lacks) })
		})
	}
}

// looks is how often leaked goroutines are searched for after Close. Each search sleeps twenty
// times, half a second in all, in which a goroutine that was told to end may not have run yet.
const looks = 4

// testCase is one contract and the capability it requires.
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
	t.Cleanup(func() { s.checkGoroutines(before) }) // after the cleanups of the test, and before those of setup
	defer s.closeAll()                              // even after Fatal, and before a fixture closes registries in t.Cleanup
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

// checkFixture checks that the capabilities of the fixture match lacks.
func (s *suite) checkFixture(lacks []Capability) {
	s.Helper()
	has := map[Capability]bool{
		Announcing: s.Open != nil,
		Outages:    s.Stop != nil && s.Start != nil,
		Leases:     s.ForgetLeases != nil,
	}
	for c, ok := range has {
		if lacking := slices.Contains(lacks, c); ok == lacking {
			s.Fatalf("fixture: has the capability %q: %v, listed in lacks: %v: make them agree", c, ok, lacking)
		}
	}
	if s.Open == nil && s.Resolver == nil {
		s.Fatal("fixture: has neither Open nor Resolver: give one")
	}
}

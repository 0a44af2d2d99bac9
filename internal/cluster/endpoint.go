package cluster

import (
	"slices"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
)

// Endpoint is one instance as a client sees it. Its methods are safe for concurrent use.
type Endpoint[H Host, R comparable] struct {
	*balance.Endpoint
	Host H // not changed

	gone bool // no longer listed by the registry; kept because too many left at once

	cluster *Cluster[H, R]
	conduct endpointHealth[H, R]
	rank    uint64 // order in which the subset is chosen

	// Guarded by the mutex of the cluster.
	down    bool      // state when the view was last built
	outside bool      // not in the subset
	since   mono.Time // time when it became available again; 0: there from the beginning
}

// Lonely reports whether there is at most one instance, so that calls have nowhere else to go.
func (e *Endpoint[H, R]) Lonely() bool { return e.cluster.lonely() }

// Counting reports whether successes are counted now: Succeeded is called only then.
func (e *Endpoint[H, R]) Counting() bool { return e.cluster.alert.Load() }

// Suspect reports whether failures count. If they do, successes count from now on too.
func (e *Endpoint[H, R]) Suspect() bool {
	if !e.cluster.judging.Load() {
		return false
	}
	e.cluster.alert.Store(true)
	return true
}

// Succeeded counts an attempt that the instance answered with a result that does not count against
// it.
func (e *Endpoint[H, R]) Succeeded(m *Method[H, R], d time.Duration) {
	t, c := e.methodCounters(m), &e.conduct
	t.answered.Add(1)
	if e.cluster.o.Ejection.Slow > 0 {
		t.took.Add(int64(d))
	}
	if c.streak.Load() != 0 {
		c.streak.Store(0)
	}
	if c.silences.Load() != 0 {
		c.silences.Store(0)
	}
	if c.standing.Load() == OnTrial {
		c.good.Add(1)
		e.cluster.look()
	}
	if t.half.Load() {
		t.good.Add(1)
		e.cluster.look()
	}
}

// Returned counts an attempt that the handler ended with an error of a code.
func (e *Endpoint[H, R]) Returned(m *Method[H, R], code uint8, d time.Duration) {
	if slices.Contains(e.cluster.o.Breaker.Codes, code) {
		e.Failed(m)
		return
	}
	e.Succeeded(m, d)
}

// Shed counts an attempt that the instance refused because it is overloaded: sending its calls
// elsewhere would overload other instances.
func (e *Endpoint[H, R]) Shed(m *Method[H, R]) {
	e.methodCounters(m).shed.Add(1)
	e.cluster.look()
}

// Refused counts an attempt that the instance refused because of its own state.
func (e *Endpoint[H, R]) Refused(m *Method[H, R]) {
	e.conduct.streak.Add(1)
	e.Failed(m)
}

// Starved counts an attempt that timed out without a byte received on its connection, not even for
// other calls: the process is stopped or gone. A slow method looks different.
func (e *Endpoint[H, R]) Starved(m *Method[H, R]) {
	e.conduct.silences.Add(1)
	e.Failed(m)
}

// Failed counts an attempt that failed in another way.
func (e *Endpoint[H, R]) Failed(m *Method[H, R]) {
	t, c := e.methodCounters(m), &e.conduct
	t.failed.Add(1)
	if c.standing.Load() == OnTrial {
		c.bad.Add(1)
	}
	if t.half.Load() {
		t.bad.Add(1)
	}
	e.cluster.look()
}

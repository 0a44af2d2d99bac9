package cluster

import (
	"sync"
	"sync/atomic"
)

// endpointHealth holds the results of the attempts at an endpoint. Attempts write it, except where
// noted.
type endpointHealth[H Host, R comparable] struct {
	standing atomic.Uint32                                          // written by the health goroutine
	streak   atomic.Int32                                           // refusals since the last success
	silences atomic.Int32                                           // timeouts without a byte received, since the last success
	good     atomic.Int32                                           // probes that succeeded
	bad      atomic.Int32                                           // probes that failed
	tallies  atomic.Pointer[[]atomic.Pointer[methodCounters[H, R]]] // by method index

	growing sync.Mutex // held while tallies changes

	// Guarded by the mutex of the cluster.
	ejection ejection
}

// methodCounters counts the attempts of one method at one endpoint.
type methodCounters[H Host, R comparable] struct {
	answered atomic.Int64 // attempts that were answered
	failed   atomic.Int64
	shed     atomic.Int64 // attempts refused because of overload
	took     atomic.Int64 // total nanoseconds of the answered attempts
	half     atomic.Bool  // the breaker is half open; written by the health goroutine
	good     atomic.Int32 // probes that succeeded
	bad      atomic.Int32
	_        [64]byte // keeps endpoints and methods on separate cache lines

	method *Method[H, R]

	// Guarded by the mutex of the cluster.
	seen    counts // values of the counters at the last check
	ring    [ringSlots]counts
	slot    int64 // latest slot of ring
	breaker breaker
}

// counts holds sums of attempts over some time.
type counts struct{ answered, failed, shed, took int64 }

func (c *counts) add(o counts) {
	c.answered += o.answered
	c.failed += o.failed
	c.shed += o.shed
	c.took += o.took
}

func (c *counts) attempts() int64 { return c.answered + c.failed + c.shed }

// ringSlots is the number of slots in a window.
const ringSlots = 10

// advance adds what was counted since the last call to the window, and returns the window's sums.
func (t *methodCounters[H, R]) advance(slot int64) (sum counts) {
	for i := range min(slot-t.slot, ringSlots) {
		t.ring[(slot-i)%ringSlots] = counts{}
	}
	t.slot = max(slot, t.slot)
	now := counts{t.answered.Load(), t.failed.Load(), t.shed.Load(), t.took.Load()}
	t.ring[t.slot%ringSlots].add(counts{
		now.answered - t.seen.answered, now.failed - t.seen.failed, now.shed - t.seen.shed, now.took - t.seen.took,
	})
	t.seen = now
	for i := range t.ring {
		sum.add(t.ring[i])
	}
	return sum
}

// forget starts a new window.
func (t *methodCounters[H, R]) forget() { t.ring = [ringSlots]counts{} }

// methodCounters returns the counters of the method at e.
func (e *Endpoint[H, R]) methodCounters(m *Method[H, R]) *methodCounters[H, R] {
	if list := e.conduct.tallies.Load(); list != nil && m.Index < len(*list) {
		if t := (*list)[m.Index].Load(); t != nil {
			return t
		}
	}
	return e.newMethodCounters(e.cluster.counted(m))
}

func (e *Endpoint[H, R]) newMethodCounters(m *Method[H, R]) *methodCounters[H, R] {
	c := &e.conduct
	c.growing.Lock()
	defer c.growing.Unlock()
	list := c.tallies.Load()
	if list == nil || m.Index >= len(*list) {
		list = growMethodCounters(list, m.Index+1)
		c.tallies.Store(list)
	}
	place := &(*list)[m.Index]
	if t := place.Load(); t != nil {
		return t
	}
	fresh := &methodCounters[H, R]{method: m}
	place.Store(fresh)
	return fresh
}

// growMethodCounters returns a copy with room for at least n, and at least twice the old length.
func growMethodCounters[H Host, R comparable](old *[]atomic.Pointer[methodCounters[H, R]], n int) *[]atomic.Pointer[methodCounters[H, R]] {
	if old == nil {
		next := make([]atomic.Pointer[methodCounters[H, R]], n)
		return &next
	}
	next := make([]atomic.Pointer[methodCounters[H, R]], max(n, 2*len(*old)))
	for i := range *old {
		next[i].Store((*old)[i].Load())
	}
	return &next
}

// forgetCounters drops all counters.
func (c *endpointHealth[H, R]) forgetCounters() {
	c.growing.Lock()
	c.tallies.Store(nil)
	c.growing.Unlock()
}

// each calls f with the counters of every method.
func (c *endpointHealth[H, R]) each(f func(*methodCounters[H, R])) {
	list := c.tallies.Load()
	if list == nil {
		return
	}
	for i := range *list {
		if t := (*list)[i].Load(); t != nil {
			f(t)
		}
	}
}

// cleanLocked forgets the results of the endpoint.
func (e *Endpoint[H, R]) cleanLocked() {
	c := &e.conduct
	c.streak.Store(0)
	c.silences.Store(0)
	c.each(func(t *methodCounters[H, R]) {
		t.advance(t.slot)
		t.forget()
	})
}

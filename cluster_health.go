package anser

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
)

// The client judges instances by the results of its attempts: a breaker per instance and method
// (cluster_breaker.go), and the ejection of whole instances (cluster_ejection.go). Calls only
// count; one goroutine of the client evaluates the counts, decides, and builds the views that leave
// instances out.
//
// Nothing is counted before an attempt fails. From then on, until nothing has failed for a window,
// each attempt that succeeds costs an atomic addition; before and after that it costs one load.

// outState is the ejection state of an endpoint.
type outState = uint32

const (
	inUse   outState = iota
	ejected          // gets no calls
	onTrial          // gets single calls as probes
)

// endpointHealth holds the results of the attempts at an endpoint. Attempts write it, except where
// noted.
type endpointHealth struct {
	standing atomic.Uint32                                    // written by the health goroutine
	streak   atomic.Int32                                     // refusals since the last success
	silences atomic.Int32                                     // timeouts without a byte received, since the last success
	good     atomic.Int32                                     // probes that succeeded
	bad      atomic.Int32                                     // probes that failed
	tallies  atomic.Pointer[[]atomic.Pointer[methodCounters]] // by method index

	growing sync.Mutex // held while tallies changes

	// Guarded by the mutex of the cluster.
	ejection ejection
}

// methodCounters counts the attempts of one method at one endpoint.
type methodCounters struct {
	answered atomic.Int64 // attempts that were answered
	failed   atomic.Int64
	shed     atomic.Int64 // attempts refused because of overload
	took     atomic.Int64 // total nanoseconds of the answered attempts
	half     atomic.Bool  // the breaker is half open; written by the health goroutine
	good     atomic.Int32 // probes that succeeded
	bad      atomic.Int32
	_        [64]byte // keeps endpoints and methods on separate cache lines

	method *clientMethod

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
func (t *methodCounters) advance(slot int64) (sum counts) {
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
func (t *methodCounters) forget() { t.ring = [ringSlots]counts{} }

// methodCounters returns the counters of the method at e.
func (e *endpoint) methodCounters(m *clientMethod) *methodCounters {
	if list := e.conduct.tallies.Load(); list != nil && m.index < len(*list) {
		if t := (*list)[m.index].Load(); t != nil {
			return t
		}
	}
	return e.newMethodCounters(e.cluster.client.methods.counted(m))
}

func (e *endpoint) newMethodCounters(m *clientMethod) *methodCounters {
	c := &e.conduct
	c.growing.Lock()
	defer c.growing.Unlock()
	list := c.tallies.Load()
	if list == nil || m.index >= len(*list) {
		list = growMethodCounters(list, m.index+1)
		c.tallies.Store(list)
	}
	place := &(*list)[m.index]
	if t := place.Load(); t != nil {
		return t
	}
	fresh := &methodCounters{method: m}
	place.Store(fresh)
	return fresh
}

// growMethodCounters returns a copy with room for at least n, and at least twice the old length.
func growMethodCounters(old *[]atomic.Pointer[methodCounters], n int) *[]atomic.Pointer[methodCounters] {
	if old == nil {
		next := make([]atomic.Pointer[methodCounters], n)
		return &next
	}
	next := make([]atomic.Pointer[methodCounters], max(n, 2*len(*old)))
	for i := range *old {
		next[i].Store((*old)[i].Load())
	}
	return &next
}

// forgetCounters drops all counters.
func (c *endpointHealth) forgetCounters() {
	c.growing.Lock()
	c.tallies.Store(nil)
	c.growing.Unlock()
}

// each calls f with the counters of every method.
func (c *endpointHealth) each(f func(*methodCounters)) {
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

// recordSuccess counts an attempt that the instance answered with a result that does not count
// against it. It is called only while the client counts.
func (e *endpoint) recordSuccess(m *clientMethod, d time.Duration) {
	t, c := e.methodCounters(m), &e.conduct
	t.answered.Add(1)
	if e.cluster.client.o.ejection.Slow > 0 {
		t.took.Add(int64(d))
	}
	if c.streak.Load() != 0 {
		c.streak.Store(0)
	}
	if c.silences.Load() != 0 {
		c.silences.Store(0)
	}
	if c.standing.Load() == onTrial {
		c.good.Add(1)
		e.cluster.look()
	}
	if t.half.Load() {
		t.good.Add(1)
		e.cluster.look()
	}
}

// recordFailure counts an attempt that failed with err. Errors that say nothing about the instance,
// and errors that its connections reveal anyway, are left to settle and the host.
func (k *call) recordFailure(e *endpoint, conn *callerHalf, m *clientMethod, err *Error) {
	cl := e.cluster
	if !cl.judging.Load() || err.Code == Canceled && err.Outcome != Executed || err.isOfRequest() {
		return
	}
	cl.alert.Store(true)
	switch err.Outcome {
	case Executed:
		if !cl.client.o.breaker.counts(err.Code) {
			e.recordSuccess(m, mono.Since(k.began))
			return
		}
	case Refused:
		switch err.Code {
		case ResourceExhausted: // sending its calls elsewhere would overload other instances
			e.methodCounters(m).shed.Add(1)
			cl.look()
			return
		case DeadlineExceeded: // the call arrived too late
			return
		case Unimplemented: // the method is missing, not the instance
		default:
			e.conduct.streak.Add(1)
		}
	case OutcomeUnknown:
		// If nothing at all arrived on the connection, not even for other calls, the process is
		// stopped or gone; a slow method looks different.
		if err.Code == DeadlineExceeded && conn != nil && conn.progress.lastRead.Load() <= k.began {
			e.conduct.silences.Add(1)
		}
	}
	e.failedIn(m)
}

// failedIn counts a failure of the method at e.
func (e *endpoint) failedIn(m *clientMethod) {
	t, c := e.methodCounters(m), &e.conduct
	t.failed.Add(1)
	if c.standing.Load() == onTrial {
		c.bad.Add(1)
	}
	if t.half.Load() {
		t.bad.Add(1)
	}
	e.cluster.look()
}

// cleanLocked forgets the results of the endpoint.
func (e *endpoint) cleanLocked() {
	c := &e.conduct
	c.streak.Store(0)
	c.silences.Store(0)
	c.each(func(t *methodCounters) {
		t.advance(t.slot)
		t.forget()
	})
}

// probe holds the endpoint that the next call should try.
type probe struct{ next atomic.Pointer[endpoint] }

// take returns the endpoint to probe if this call is the first to ask, or nil. Unless among is nil,
// the endpoint must be in it.
func (t *probe) take(r *balance.Request, among []*endpoint) *endpoint {
	e := t.next.Load()
	if e == nil || r.HasTried(e.Endpoint) || among != nil && !slices.Contains(among, e) || !t.next.CompareAndSwap(e, nil) {
		return nil
	}
	return e
}

// forCall returns the view for a call of the method: v, or a view without the instances whose
// breakers are open; with a route, the part of that view that the route selects.
func (v *view) forCall(m *clientMethod, route *Route) *view {
	if v == nil {
		return nil
	}
	if around := m.view.Load(); around != nil {
		v = around
	}
	if route != nil {
		v = v.forRoute(route)
	}
	return v
}

// look wakes the health goroutine.
func (cl *cluster) look() {
	select {
	case cl.kick <- struct{}{}:
	default:
	}
}

const (
	lookPause   = 100 * time.Millisecond // minimum time between two checks
	lookTrials  = 250 * time.Millisecond // while instances are ejected
	lookCounted = time.Second            // while attempts are counted
)

// watchHealth is the health goroutine. It sleeps while nothing fails.
func (cl *cluster) watchHealth() {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	ctx := cl.client.ctx
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-cl.kick:
		case <-timer.C:
		}
		again, events := cl.checkHealth(mono.Now())
		for _, e := range events {
			cl.emit(e)
		}
		timer.Stop()
		if again > 0 {
			timer.Reset(again)
		}
		cl.client.sleep(ctx, lookPause)
	}
}

// noteReachableLocked notes which endpoints are reachable. An endpoint that has become reachable
// again starts with a clean record.
func (cl *cluster) noteReachableLocked(now mono.Time) {
	o := &cl.client.o
	judging := len(cl.endpoints) > 1 && !(o.breaker.Off && o.ejection.Off)
	cl.judging.Store(judging)
	for _, e := range cl.endpoints {
		if judging && !o.ejection.Off {
			e.host.judged.Store(true)
		}
		down, late, met := e.host.missing()
		if late {
			cl.wary.Store(now.Add(waryFor))
		}
		if met {
			cl.met.Store(true)
		}
		was := e.down
		if e.down = down; was && !down {
			e.since = now
			cl.reconnectedLocked(e, now)
		}
		if e.host.silent.Load() && e.conduct.standing.Load() == inUse || cl.out > 0 {
			cl.look()
		}
	}
	if judging && !cl.watched {
		cl.watched = true
		cl.client.wg.Go(cl.watchHealth)
		if o.ejection.Slow > 0 {
			cl.alert.Store(true)
			cl.look()
		}
	}
	if o.slowStart > 0 {
		cl.warmLocked(now)
	}
}

// checkHealth runs one check of all endpoints. It returns the time until the next check, or 0 for
// none, and the events to emit.
func (cl *cluster) checkHealth(now mono.Time) (again time.Duration, events []HealthEvent) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.closed {
		return 0, nil
	}
	b, j := &cl.client.o.breaker, &cl.client.o.ejection
	failing := false
	slot := now.Nanoseconds() / int64(b.Window/ringSlots)
	sums := make(map[*endpoint]counts, len(cl.endpoints))
	for _, e := range cl.endpoints {
		sum, bad := cl.checkCountersLocked(e, slot, now)
		failing = failing || bad || e.remembersLocked(now)
		sums[e] = sum
	}
	if !j.Off {
		cl.checkEjectionsLocked(sums, now)
	}
	cl.offerProbesLocked(now)
	grown := cl.checkSubsetLocked(now)
	if cl.healthChanged || grown {
		cl.healthChanged = false
		cl.rebuildLocked()
	}
	events, cl.events = cl.events, nil
	out := cl.out > 0 || len(cl.broken) > 0
	switch {
	case out:
		again = lookTrials
	case failing || j.Slow > 0:
		again = lookCounted
	default:
		cl.alert.Store(false)
		for _, e := range cl.endpoints {
			e.conduct.forgetCounters()
			e.conduct.streak.Store(0)
			e.conduct.silences.Store(0)
		}
	}
	if cl.inSubset > 0 && again == 0 {
		again = lookCounted
	}
	return again, events
}

// rowMemory is how long failures in a row are remembered without another one: calls may be rare,
// and each may take long.
const rowMemory = time.Minute

// remembersLocked reports whether the endpoint has failures in a row that are recent enough.
func (e *endpoint) remembersLocked(now mono.Time) bool {
	j := &e.conduct.ejection
	row := e.conduct.streak.Load() + e.conduct.silences.Load()
	if row != j.row {
		j.row, j.rowAt = row, now
	}
	return row > 0 && now.Sub(j.rowAt) < rowMemory
}

// checkCountersLocked checks the breakers of an endpoint. It returns the sums of all of its
// methods, and whether anything has failed.
func (cl *cluster) checkCountersLocked(e *endpoint, slot int64, now mono.Time) (sum counts, bad bool) {
	e.conduct.each(func(t *methodCounters) {
		own := t.advance(slot)
		sum.add(own)
		bad = bad || own.failed+own.shed > 0
		if !cl.client.o.breaker.Off {
			cl.checkBreakerLocked(e, t, own, now)
		}
	})
	return sum, bad
}

// trialPatience is how long the next probe waits for the result of the previous one.
const trialPatience = 5 * time.Second

// probes tracks the probes of one endpoint, or of one method there.
type probes struct {
	offered mono.Time // time of the last one; 0: none
	results int32     // number of results at that time
}

// due reports whether another probe may start: there is at most one in flight, unless it takes too
// long.
func (t *probes) due(results int32, now mono.Time) bool {
	return t.offered == 0 || results != t.results || now.Sub(t.offered) > trialPatience
}

func (t *probes) offer(results int32, now mono.Time) { t.offered, t.results = now, results }

// offerProbesLocked lets calls probe instances that may have recovered, one at a time.
func (cl *cluster) offerProbesLocked(now mono.Time) {
	if cl.out > 0 && cl.trial.next.Load() == nil {
		var best *endpoint
		for _, e := range cl.endpoints {
			c := &e.conduct
			if c.standing.Load() == onTrial && !e.down && !e.host.silent.Load() && c.ejection.trials.due(c.good.Load()+c.bad.Load(), now) &&
				(best == nil || c.ejection.trials.offered < best.conduct.ejection.trials.offered) {
				best = e
			}
		}
		if best != nil {
			c := &best.conduct
			c.ejection.trials.offer(c.good.Load()+c.bad.Load(), now)
			best.Renew(now.Nanoseconds())
			cl.trial.next.Store(best)
		}
	}
	for m, list := range cl.broken {
		if m.trial.next.Load() != nil {
			continue
		}
		var best *endpoint
		for _, e := range list {
			t := e.methodCounters(m)
			if t.half.Load() && !e.down && e.conduct.standing.Load() == inUse && t.breaker.trials.due(t.good.Load()+t.bad.Load(), now) &&
				(best == nil || t.breaker.trials.offered < best.methodCounters(m).breaker.trials.offered) {
				best = e
			}
		}
		if best != nil {
			t := best.methodCounters(m)
			t.breaker.trials.offer(t.good.Load()+t.bad.Load(), now)
			best.Renew(now.Nanoseconds())
			m.trial.next.Store(best)
		}
	}
}

package cluster

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// The client judges instances by the results of its attempts: a breaker per instance and method
// (breaker.go), and the ejection of whole instances (ejection.go). Calls only count; one goroutine
// of the cluster evaluates the counts, decides, and builds the views that leave instances out.
//
// Nothing is counted before an attempt fails. From then on, until nothing has failed for a window,
// each attempt that succeeds costs an atomic addition; before and after that it costs one load.

// Standing is the ejection state of an endpoint.
type Standing = uint32

// The standings.
const (
	InUse   Standing = iota
	Ejected          // gets no calls
	OnTrial          // gets single calls as probes
)

// look wakes the health goroutine.
func (cl *Cluster[H, R]) look() {
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
func (cl *Cluster[H, R]) watchHealth() {
	timer, pause := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	timer.Stop()
	pause.Stop()
	defer timer.Stop()
	defer pause.Stop()
	for !cl.ended() {
		select {
		case <-cl.done:
		case <-cl.kick:
		case <-timer.C:
		}
		again, events := cl.checkHealth(mono.Now())
		for _, e := range events {
			cl.o.Emit(e)
		}
		timer.Stop()
		if again > 0 {
			timer.Reset(again)
		}
		pause.Reset(lookPause)
		select {
		case <-pause.C:
		case <-cl.done:
		}
	}
}

// noteReachableLocked notes which endpoints are reachable. An endpoint that has become reachable
// again starts with a clean record.
func (cl *Cluster[H, R]) noteReachableLocked(now mono.Time) {
	o := &cl.o
	judging := len(cl.endpoints) > 1 && !(o.Breaker.Off && o.Ejection.Off)
	cl.judging.Store(judging)
	for _, e := range cl.endpoints {
		if judging && !o.Ejection.Off {
			e.Host.Judge()
		}
		reach := e.Host.Reach()
		if reach.Late {
			cl.wary.Store(now.Add(waryFor))
		}
		if reach.Met {
			cl.met.Store(true)
		}
		was := e.down
		if e.down = reach.Missing(); was && !e.down {
			e.since = now
			cl.reconnectedLocked(e, now)
		}
		if e.Host.Silent() && e.conduct.standing.Load() == InUse || cl.out > 0 {
			cl.look()
		}
	}
	if judging && !cl.watched {
		cl.watched = true
		cl.wg.Go(cl.watchHealth)
		if o.Ejection.Slow > 0 {
			cl.alert.Store(true)
			cl.look()
		}
	}
	if o.SlowStart > 0 {
		cl.warmLocked(now)
	}
}

// checkHealth runs one check of all endpoints. It returns the time until the next check, or 0 for
// none, and the events to emit.
func (cl *Cluster[H, R]) checkHealth(now mono.Time) (again time.Duration, events []Event) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.closed {
		return 0, nil
	}
	b, j := &cl.o.Breaker, &cl.o.Ejection
	failing := false
	slot := now.Nanoseconds() / int64(b.Window/ringSlots)
	sums := make(map[*Endpoint[H, R]]counts, len(cl.endpoints))
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
func (e *Endpoint[H, R]) remembersLocked(now mono.Time) bool {
	j := &e.conduct.ejection
	row := e.conduct.streak.Load() + e.conduct.silences.Load()
	if row != j.row {
		j.row, j.rowAt = row, now
	}
	return row > 0 && now.Sub(j.rowAt) < rowMemory
}

// checkCountersLocked checks the breakers of an endpoint. It returns the sums of all of its
// methods, and whether anything has failed.
func (cl *Cluster[H, R]) checkCountersLocked(e *Endpoint[H, R], slot int64, now mono.Time) (sum counts, bad bool) {
	e.conduct.each(func(t *methodCounters[H, R]) {
		own := t.advance(slot)
		sum.add(own)
		bad = bad || own.failed+own.shed > 0
		if !cl.o.Breaker.Off {
			cl.checkBreakerLocked(e, t, own, now)
		}
	})
	return sum, bad
}

package cluster

import (
	"fmt"
	"slices"

	"github.com/anser-rpc/anser/internal/mono"
)

// BreakerState is the state of a circuit breaker.
type BreakerState uint8

// The states of a breaker.
const (
	Closed   BreakerState = iota // all calls pass
	Open                         // no call passes
	HalfOpen                     // single calls pass, as probes
)

// breaker is the state of one breaker, guarded by the mutex of the cluster.
type breaker struct {
	state  BreakerState
	since  mono.Time // time of the latest change
	until  mono.Time // time at which an open breaker lets a probe pass
	failed int       // number of times in a row that it opened
	why    string    // reason of the latest opening
	sum    counts
	trials probes
}

// goodTrials is the number of successive probes that must succeed.
const goodTrials = 3

// checkBreakerLocked advances the breaker of a method at e, given the sums of its window.
func (cl *Cluster[H, R]) checkBreakerLocked(e *Endpoint[H, R], t *methodCounters[H, R], sum counts, now mono.Time) {
	o, b := &cl.o.Breaker, &t.breaker
	b.sum = sum
	switch n := sum.answered + sum.failed; {
	case b.state == Closed && len(cl.endpoints) > 1 && n >= int64(o.Calls) && float64(sum.failed) >= o.Ratio*float64(n):
		if b.failed > 0 && now.Sub(b.since) > breakerMemory*o.Open {
			b.failed = 0
		}
		cl.openLocked(e, t, fmt.Sprintf("%d of %d calls failed", sum.failed, n), now)
	case b.state == Open && now >= b.until:
		b.state, b.since, b.trials = HalfOpen, now, probes{}
		t.good.Store(0)
		t.bad.Store(0)
		t.half.Store(true)
		cl.noteLocked(e, BreakerHalfOpen, t.method.Name, "single calls try it", 0, false)
	case b.state == HalfOpen && t.bad.Load() > 0:
		cl.openLocked(e, t, "a probe failed", now)
	case b.state == HalfOpen && t.good.Load() >= goodTrials:
		cl.closeBreakerLocked(e, t, fmt.Sprintf("%d probes succeeded", goodTrials), now)
	}
}

// breakerMemory is how long a closed breaker remembers that it was open, in multiples of its first
// open time.
const breakerMemory = 10

// openLocked opens the breaker; each time in a row it stays open for longer.
func (cl *Cluster[H, R]) openLocked(e *Endpoint[H, R], t *methodCounters[H, R], why string, now mono.Time) {
	b := &t.breaker
	d := cl.o.Breaker.Open << min(b.failed, 2)
	first := b.state == Closed
	b.state, b.since, b.until = Open, now, now.Add(d)
	b.failed++
	b.why = why
	t.half.Store(false)
	t.forget()
	cl.noteLocked(e, BreakerOpened, t.method.Name, why, d, !first)
	if first {
		cl.broken[t.method] = append(cl.broken[t.method], e)
		cl.healthChanged = true
	}
}

func (cl *Cluster[H, R]) closeBreakerLocked(e *Endpoint[H, R], t *methodCounters[H, R], why string, now mono.Time) {
	t.breaker.state, t.breaker.since = Closed, now
	t.half.Store(false)
	t.forget()
	cl.dropBrokenLocked(e, t.method)
	cl.noteLocked(e, BreakerClosed, t.method.Name, why, 0, false)
}

// dropBrokenLocked removes e from the endpoints whose breaker for the method is not closed.
func (cl *Cluster[H, R]) dropBrokenLocked(e *Endpoint[H, R], m *Method[H, R]) {
	list := slices.DeleteFunc(slices.Clone(cl.broken[m]), func(o *Endpoint[H, R]) bool { return o == e })
	cl.healthChanged = true
	if len(list) > 0 {
		cl.broken[m] = list
		return
	}
	delete(cl.broken, m)
	m.view.Store(nil)
	m.trial.next.Store(nil)
}

// closeBreakersLocked closes all breakers of an endpoint.
func (cl *Cluster[H, R]) closeBreakersLocked(e *Endpoint[H, R], why string, now mono.Time) {
	for m, list := range cl.broken {
		if slices.Contains(list, e) {
			cl.closeBreakerLocked(e, e.methodCounters(m), why, now)
		}
	}
}

// BreakerStatus describes a breaker that is not closed or has counted failures.
type BreakerStatus struct {
	Method       string
	State        BreakerState
	Calls        int64     // attempts within the window
	Failed       int64     // of these, attempts that failed
	Since, Until mono.Time // latest change of State; when an open breaker lets the first probe pass
	Why          string    // reason of the latest opening
}

// breakersLocked returns the breakers of e that are not closed or have counted a failure.
func (e *Endpoint[H, R]) breakersLocked() (all []BreakerStatus) {
	e.conduct.each(func(t *methodCounters[H, R]) {
		b := &t.breaker
		if b.state == Closed && b.sum.failed == 0 {
			return
		}
		all = append(all, BreakerStatus{
			Method: t.method.Name, State: b.state, Calls: b.sum.answered + b.sum.failed, Failed: b.sum.failed,
			Since: b.since, Until: b.until, Why: b.why,
		})
	})
	return all
}

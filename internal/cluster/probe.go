package cluster

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
)

// probe holds the endpoint that the next call should try.
type probe[H Host, R comparable] struct {
	next atomic.Pointer[Endpoint[H, R]]
}

// take returns the endpoint to probe if this call is the first to ask, or nil. Unless among is nil,
// the endpoint must be in it.
func (t *probe[H, R]) take(r *balance.Request, among []*Endpoint[H, R]) *Endpoint[H, R] {
	e := t.next.Load()
	if e == nil || r.HasTried(e.Endpoint) || among != nil && !slices.Contains(among, e) || !t.next.CompareAndSwap(e, nil) {
		return nil
	}
	return e
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
func (cl *Cluster[H, R]) offerProbesLocked(now mono.Time) {
	if cl.out > 0 && cl.trial.next.Load() == nil {
		var best *Endpoint[H, R]
		for _, e := range cl.endpoints {
			c := &e.conduct
			if c.standing.Load() == OnTrial && !e.down && !e.Host.Silent() && c.ejection.trials.due(c.good.Load()+c.bad.Load(), now) &&
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
		var best *Endpoint[H, R]
		for _, e := range list {
			t := e.methodCounters(m)
			if t.half.Load() && !e.down && e.conduct.standing.Load() == InUse && t.breaker.trials.due(t.good.Load()+t.bad.Load(), now) &&
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

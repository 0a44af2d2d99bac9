package cluster

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// ejection is the ejection state of one endpoint, guarded by the mutex of the cluster.
type ejection struct {
	why    string
	silent bool      // it answers no pings, and returns when it does
	since  mono.Time // time of the latest change
	until  mono.Time // time of the first trial
	times  int       // ejections in a row
	row    int32     // failures in a row at the last check
	rowAt  mono.Time // time since when row has this value
	trials probes
}

// candidate is an endpoint that may be ejected; a lower rank is a graver reason.
type candidate[H Host, R comparable] struct {
	e      *Endpoint[H, R]
	rank   int
	why    string
	silent bool
}

// checkEjectionsLocked restores endpoints that have recovered and ejects those with too many
// failures, given the sums of each endpoint in the window.
func (cl *Cluster[H, R]) checkEjectionsLocked(sums map[*Endpoint[H, R]]counts, now mono.Time) {
	reachable := 0
	for _, e := range cl.endpoints {
		if !e.down {
			reachable++
		}
		cl.checkOutLocked(e, now)
	}
	if cl.inSubset > 0 {
		reachable = min(reachable, cl.inSubset) // instances outside the subset replace ejected ones
	}
	limit := int(cl.o.Ejection.MaxPart * float64(reachable))
	suspects := cl.ejectionCandidatesLocked(sums)
	slices.SortStableFunc(suspects, func(a, b candidate[H, R]) int { return a.rank - b.rank })
	for _, s := range suspects {
		if cl.out >= limit {
			break
		}
		cl.ejectLocked(s, now)
	}
}

// checkOutLocked advances the state of an ejected endpoint.
func (cl *Cluster[H, R]) checkOutLocked(e *Endpoint[H, R], now mono.Time) {
	c, j := &e.conduct, &e.conduct.ejection
	switch c.standing.Load() {
	case Ejected:
		switch {
		case j.silent && !e.Host.Silent() && !e.down:
			cl.unejectLocked(e, "it answers again", now)
		case !j.silent && now >= j.until && !e.down:
			c.good.Store(0)
			c.bad.Store(0)
			j.trials = probes{}
			c.standing.Store(OnTrial)
		}
	case OnTrial:
		switch {
		case e.Host.Silent():
			j.silent, j.why = true, whySilent
			c.standing.Store(Ejected)
		case c.bad.Load() > 0:
			cl.ejectForLocked(e, j.why+"; a call that tried it failed", now)
		case c.good.Load() >= goodTrials:
			cl.unejectLocked(e, fmt.Sprintf("%d calls that tried it succeeded", goodTrials), now)
		}
	}
}

const whySilent = "it does not answer pings"

// ejectionCandidatesLocked returns the endpoints in use that should be ejected.
func (cl *Cluster[H, R]) ejectionCandidatesLocked(sums map[*Endpoint[H, R]]counts) (all []candidate[H, R]) {
	o := &cl.o.Ejection
	var rates, means []measured[H, R]
	for e, sum := range sums {
		c := &e.conduct
		if c.standing.Load() != InUse || e.down {
			continue
		}
		switch n := c.silences.Load(); {
		case e.Host.Silent():
			all = append(all, candidate[H, R]{e, 0, whySilent, true})
		case n >= int32(o.Timeouts):
			all = append(all, candidate[H, R]{e, 1, fmt.Sprintf("%d calls in a row timed out, and nothing was received", n), false})
		case c.streak.Load() >= int32(o.Failures):
			all = append(all, candidate[H, R]{e, 2, fmt.Sprintf("it refused %d calls in a row", c.streak.Load()), false})
		}
		if n := sum.attempts(); n >= int64(o.Calls) {
			rates = append(rates, measured[H, R]{e, float64(sum.answered) / float64(n)})
			if sum.answered > 0 {
				means = append(means, measured[H, R]{e, float64(sum.took) / float64(sum.answered)})
			}
		}
	}
	all = append(all, failingMore(rates, o.Deviations)...)
	if o.Slow > 0 {
		all = append(all, slower(means, o.Slow)...)
	}
	return all
}

// measured is a figure measured at an endpoint.
type measured[H Host, R comparable] struct {
	e *Endpoint[H, R]
	x float64
}

const (
	minCompared = 5   // endpoints; Envoy's success_rate_minimum_hosts
	minGap      = 0.1 // of the success rate below the mean
)

// failingMore returns the endpoints whose success rate is far below the mean.
func failingMore[H Host, R comparable](rates []measured[H, R], deviations float64) (all []candidate[H, R]) {
	if len(rates) < minCompared {
		return nil
	}
	mean, square := 0.0, 0.0
	for _, r := range rates {
		mean += r.x / float64(len(rates))
	}
	for _, r := range rates {
		square += (r.x - mean) * (r.x - mean) / float64(len(rates))
	}
	least := min(mean-deviations*math.Sqrt(square), mean-minGap)
	for _, r := range rates {
		if r.x < least {
			all = append(all, candidate[H, R]{r.e, 3, fmt.Sprintf("%.0f %% of its calls succeed, and %.0f %% of all", 100*r.x, 100*mean), false})
		}
	}
	return all
}

// slower returns the endpoints whose mean latency is at least factor times the median.
func slower[H Host, R comparable](means []measured[H, R], factor float64) (all []candidate[H, R]) {
	if len(means) < minCompared {
		return nil
	}
	slices.SortFunc(means, func(a, b measured[H, R]) int { return cmp.Compare(a.x, b.x) })
	median := means[len(means)/2].x
	for _, m := range means {
		if median > 0 && m.x >= factor*median {
			all = append(all, candidate[H, R]{m.e, 4, fmt.Sprintf("its answers take %v, the median is %v",
				time.Duration(m.x).Round(time.Microsecond), time.Duration(median).Round(time.Microsecond)), false})
		}
	}
	return all
}

// ejectMemory is how long an ejection is remembered, in multiples of its time.
const ejectMemory = 10

// ejectLocked ejects an endpoint that is in use.
func (cl *Cluster[H, R]) ejectLocked(s candidate[H, R], now mono.Time) {
	c, j := &s.e.conduct, &s.e.conduct.ejection
	if c.standing.Load() != InUse { // a candidate for two reasons
		return
	}
	if j.times > 0 && now.Sub(j.since) > ejectMemory*cl.o.Ejection.Time {
		j.times = 0
	}
	j.silent = s.silent
	cl.out++
	cl.healthChanged = true
	cl.ejectForLocked(s.e, s.why, now)
}

// ejectForLocked keeps an endpoint out of use for a time that grows with each ejection in a row.
func (cl *Cluster[H, R]) ejectForLocked(e *Endpoint[H, R], why string, now mono.Time) {
	o, c, j := &cl.o.Ejection, &e.conduct, &e.conduct.ejection
	j.times++
	d := min(o.Time*time.Duration(min(j.times, 1000)), o.MaxTime)
	j.since, j.until = now, now.Add(d)
	again := c.standing.Load() != InUse
	if !again {
		j.why = why
	}
	c.standing.Store(Ejected)
	e.cleanLocked()
	if j.silent {
		d = 0 // the end is unknown
	}
	cl.noteLocked(e, InstanceEjected, "", why, d, again)
}

// unejectLocked puts an endpoint back into use.
func (cl *Cluster[H, R]) unejectLocked(e *Endpoint[H, R], why string, now mono.Time) {
	c, j := &e.conduct, &e.conduct.ejection
	j.silent, j.since, j.why = false, now, ""
	e.cleanLocked()
	e.since = now
	e.Renew(now.Nanoseconds())
	c.standing.Store(InUse)
	cl.out--
	cl.healthChanged = true
	if cl.trial.next.Load() == e {
		cl.trial.next.Store(nil)
	}
	cl.noteLocked(e, InstanceRestored, "", why, 0, false)
}

// reconnectedLocked handles an endpoint that is reachable again: its earlier results no longer
// count.
func (cl *Cluster[H, R]) reconnectedLocked(e *Endpoint[H, R], now mono.Time) {
	e.cleanLocked()
	cl.closeBreakersLocked(e, "it has a new connection", now)
	if e.conduct.standing.Load() != InUse {
		cl.unejectLocked(e, "it has a new connection", now)
	}
	if len(cl.events) > 0 {
		cl.look() // wakes the goroutine that emits events
	}
}

// forgetRemovedLocked drops the health state of an endpoint that leaves the list.
func (cl *Cluster[H, R]) forgetRemovedLocked(e *Endpoint[H, R]) {
	for m := range cl.broken {
		if slices.Contains(cl.broken[m], e) {
			cl.dropBrokenLocked(e, m)
		}
	}
	if e.conduct.standing.Load() != InUse {
		e.conduct.standing.Store(InUse)
		cl.out--
	}
	cl.trial.next.CompareAndSwap(e, nil)
}

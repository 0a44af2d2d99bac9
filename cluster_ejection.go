package anser

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// OutlierDetection configures when a client ejects an instance, for all methods at once. It is an
// option of [Dial]. Without it the defaults apply; a field that is zero means its default.
//
// An instance is ejected when
//   - it refuses Failures attempts in a row because of its own state, not because of overload;
//   - Timeouts attempts in a row time out while nothing at all arrives on their connections, or a
//     ping stays unanswered for 1.5 s while calls wait: the process is stopped, or its machine or
//     the network path to it is gone;
//   - its success rate is more than Deviations standard deviations and at least ten percentage
//     points below the mean of all instances, where at least five instances have had Calls
//     attempts within the window. This is the success rate algorithm of Envoy and gRPC (gRFC A50).
//     The ten points are an addition: where all instances do well, a standard deviation is next
//     to nothing;
//   - with Slow set, its mean latency is at least Slow times the median of all instances, under
//     the same condition.
//
// At most the fraction MaxPart of the reachable instances is ejected at a time, and never the last
// one. Beyond that limit, instances that do not answer pings get no calls either while another
// instance does answer, and idempotent calls that wait for them are made elsewhere. After Time,
// single calls probe an ejected instance: three successes bring it back, and a failure keeps it out
// for Time longer than before, up to MaxTime. An instance that did not answer pings is back as soon
// as it answers, and an instance that was unreachable as soon as it has a new connection.
// [SlowStart] then applies to it.
type OutlierDetection struct {
	Off        bool    // disables ejection
	Failures   int     // refusals in a row; the default is 5
	Timeouts   int     // timeouts in a row; the default is 3
	Deviations float64 // the default is 1.9
	Calls      int     // the default is 100
	// At least 1.5. The default is 0, which is off: with Slow every call is counted, and latencies
	// may differ for good reasons.
	Slow    float64
	Time    time.Duration // the default is 2 s
	MaxTime time.Duration // the default is 8 s
	MaxPart float64       // at most 0.5, the default
}

// DialOption makes an OutlierDetection an option of [Dial].
func (OutlierDetection) DialOption() {}

// set stores the option.
func (j OutlierDetection) set(o *dialOptions) {
	d := defaultEjection()
	d.Off, d.Slow = j.Off, j.Slow
	d.Failures, d.Timeouts, d.Calls = cmp.Or(j.Failures, d.Failures), cmp.Or(j.Timeouts, d.Timeouts), cmp.Or(j.Calls, d.Calls)
	d.Deviations, d.MaxPart = cmp.Or(j.Deviations, d.Deviations), cmp.Or(j.MaxPart, d.MaxPart)
	d.Time, d.MaxTime = cmp.Or(j.Time, d.Time), cmp.Or(j.MaxTime, max(d.MaxTime, j.Time))
	if o.wants(min(d.Failures, d.Timeouts, d.Calls) > 0, "anser.OutlierDetection: want Failures, Timeouts and Calls of at least 1, not %d, %d, %d", d.Failures, d.Timeouts, d.Calls) &&
		o.wants(d.Deviations > 0, "anser.OutlierDetection: Deviations is %v: want a number above 0", d.Deviations) &&
		o.wants(d.Slow == 0 || d.Slow >= 1.5, "anser.OutlierDetection: Slow is %v: want at least 1.5, or 0 for off", d.Slow) &&
		o.wants(d.Time > 0 && d.MaxTime >= d.Time, "anser.OutlierDetection: want a Time above 0 and a MaxTime of at least that, not %v and %v", d.Time, d.MaxTime) &&
		o.wants(d.MaxPart > 0 && d.MaxPart <= 0.5, "anser.OutlierDetection: MaxPart is %v: want more than 0 and at most 0.5", d.MaxPart) {
		o.ejection = d
	}
}

func defaultEjection() OutlierDetection {
	return OutlierDetection{
		Failures: 5, Timeouts: 3, Deviations: 1.9, Calls: 100,
		Time: 2 * time.Second, MaxTime: 8 * time.Second, MaxPart: 0.5,
	}
}

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
type candidate struct {
	e      *endpoint
	rank   int
	why    string
	silent bool
}

// checkEjectionsLocked restores endpoints that have recovered and ejects those with too many
// failures, given the sums of each endpoint in the window.
func (cl *cluster) checkEjectionsLocked(sums map[*endpoint]counts, now mono.Time) {
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
	limit := int(cl.client.o.ejection.MaxPart * float64(reachable))
	suspects := cl.ejectionCandidatesLocked(sums)
	slices.SortStableFunc(suspects, func(a, b candidate) int { return a.rank - b.rank })
	for _, s := range suspects {
		if cl.out >= limit {
			break
		}
		cl.ejectLocked(s, now)
	}
}

// checkOutLocked advances the state of an ejected endpoint.
func (cl *cluster) checkOutLocked(e *endpoint, now mono.Time) {
	c, j := &e.conduct, &e.conduct.ejection
	switch c.standing.Load() {
	case ejected:
		switch {
		case j.silent && !e.host.silent.Load() && !e.down:
			cl.unejectLocked(e, "it answers again", now)
		case !j.silent && now >= j.until && !e.down:
			c.good.Store(0)
			c.bad.Store(0)
			j.trials = probes{}
			c.standing.Store(onTrial)
		}
	case onTrial:
		switch {
		case e.host.silent.Load():
			j.silent, j.why = true, whySilent
			c.standing.Store(ejected)
		case c.bad.Load() > 0:
			cl.ejectForLocked(e, j.why+"; a call that tried it failed", now)
		case c.good.Load() >= goodTrials:
			cl.unejectLocked(e, fmt.Sprintf("%d calls that tried it succeeded", goodTrials), now)
		}
	}
}

const whySilent = "it does not answer pings"

// ejectionCandidatesLocked returns the endpoints in use that should be ejected.
func (cl *cluster) ejectionCandidatesLocked(sums map[*endpoint]counts) (all []candidate) {
	o := &cl.client.o.ejection
	var rates, means []measured
	for e, sum := range sums {
		c := &e.conduct
		if c.standing.Load() != inUse || e.down {
			continue
		}
		switch n := c.silences.Load(); {
		case e.host.silent.Load():
			all = append(all, candidate{e, 0, whySilent, true})
		case n >= int32(o.Timeouts):
			all = append(all, candidate{e, 1, fmt.Sprintf("%d calls in a row timed out, and nothing was received", n), false})
		case c.streak.Load() >= int32(o.Failures):
			all = append(all, candidate{e, 2, fmt.Sprintf("it refused %d calls in a row", c.streak.Load()), false})
		}
		if n := sum.attempts(); n >= int64(o.Calls) {
			rates = append(rates, measured{e, float64(sum.answered) / float64(n)})
			if sum.answered > 0 {
				means = append(means, measured{e, float64(sum.took) / float64(sum.answered)})
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
type measured struct {
	e *endpoint
	x float64
}

const (
	minCompared = 5   // endpoints; Envoy's success_rate_minimum_hosts
	minGap      = 0.1 // of the success rate below the mean
)

// failingMore returns the endpoints whose success rate is far below the mean.
func failingMore(rates []measured, deviations float64) (all []candidate) {
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
			all = append(all, candidate{r.e, 3, fmt.Sprintf("%.0f %% of its calls succeed, and %.0f %% of all", 100*r.x, 100*mean), false})
		}
	}
	return all
}

// slower returns the endpoints whose mean latency is at least factor times the median.
func slower(means []measured, factor float64) (all []candidate) {
	if len(means) < minCompared {
		return nil
	}
	slices.SortFunc(means, func(a, b measured) int { return cmp.Compare(a.x, b.x) })
	median := means[len(means)/2].x
	for _, m := range means {
		if median > 0 && m.x >= factor*median {
			all = append(all, candidate{m.e, 4, fmt.Sprintf("its answers take %v, the median is %v",
				time.Duration(m.x).Round(time.Microsecond), time.Duration(median).Round(time.Microsecond)), false})
		}
	}
	return all
}

// ejectMemory is how long an ejection is remembered, in multiples of its time.
const ejectMemory = 10

// ejectLocked ejects an endpoint that is in use.
func (cl *cluster) ejectLocked(s candidate, now mono.Time) {
	c, j := &s.e.conduct, &s.e.conduct.ejection
	if c.standing.Load() != inUse { // a candidate for two reasons
		return
	}
	if j.times > 0 && now.Sub(j.since) > ejectMemory*cl.client.o.ejection.Time {
		j.times = 0
	}
	j.silent = s.silent
	cl.out++
	cl.healthChanged = true
	cl.ejectForLocked(s.e, s.why, now)
}

// ejectForLocked keeps an endpoint out of use for a time that grows with each ejection in a row.
func (cl *cluster) ejectForLocked(e *endpoint, why string, now mono.Time) {
	o, c, j := &cl.client.o.ejection, &e.conduct, &e.conduct.ejection
	j.times++
	d := min(o.Time*time.Duration(min(j.times, 1000)), o.MaxTime)
	j.since, j.until = now, now.Add(d)
	if c.standing.Load() == inUse {
		j.why = why
	}
	c.standing.Store(ejected)
	e.cleanLocked()
	if j.silent {
		d = 0 // the end is unknown
	}
	cl.noteLocked(e, InstanceEjected, "", why, d)
}

// unejectLocked puts an endpoint back into use.
func (cl *cluster) unejectLocked(e *endpoint, why string, now mono.Time) {
	c, j := &e.conduct, &e.conduct.ejection
	j.silent, j.since, j.why = false, now, ""
	e.cleanLocked()
	e.since = now
	e.Renew(now.Nanoseconds())
	c.standing.Store(inUse)
	cl.out--
	cl.healthChanged = true
	if cl.trial.next.Load() == e {
		cl.trial.next.Store(nil)
	}
	cl.noteLocked(e, InstanceRestored, "", why, 0)
}

// reconnectedLocked handles an endpoint that is reachable again: its earlier results no longer
// count.
func (cl *cluster) reconnectedLocked(e *endpoint, now mono.Time) {
	e.cleanLocked()
	cl.closeBreakersLocked(e, "it has a new connection", now)
	if e.conduct.standing.Load() != inUse {
		cl.unejectLocked(e, "it has a new connection", now)
	}
	if len(cl.events) > 0 {
		cl.look() // wakes the goroutine that emits events
	}
}

// forgetRemovedLocked drops the health state of an endpoint that leaves the list.
func (cl *cluster) forgetRemovedLocked(e *endpoint) {
	for m := range cl.broken {
		if slices.Contains(cl.broken[m], e) {
			cl.dropBrokenLocked(e, m)
		}
	}
	if e.conduct.standing.Load() != inUse {
		e.conduct.standing.Store(inUse)
		cl.out--
	}
	cl.trial.next.CompareAndSwap(e, nil)
}

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// scenario is a cluster under load to which something happens.
type scenario struct {
	cluster clusterOptions
	share   float64       // the load as a share of the capacity; 0: that of the options
	most    float64       // calls/s that the load has at most; 0: no bound
	again   int           // see loadOptions
	open    int           // calls that are open at a time at most; 0: maxOpen
	callers int           // 0: 64
	depth   int           // calls of a caller at a time while the capacity is measured; 0: 4
	lasts   time.Duration // of the fault; 0: a phase
	quiet   time.Duration // after it; 0: a phase
	// fault makes it happen, heal takes it back. Neither may be nil.
	fault, heal func(*cluster) error
	began       func(*observation) // is called with the rate before the load begins, if not nil
	laden       bool               // the capacity is measured while the fault happens, which takes a part of the machine for all of its time
	files       []string           // of calls that others made
}

// callers is how many callers make the load, spread over the client processes.
const callers = 64

// observation is the recorded data.
type observation struct {
	rate                    float64 // calls/s that were offered
	most                    float64 // bound of the row, if that made the rate smaller; 0: it did not
	processes               int     // that made the load
	capacity                float64 // 0: not measured, the rate was given
	began, fault, heal, end time.Time
	calls                   []ledger.Call // of the load
	executions              []ledger.Execution
	verdict                 ledger.Verdict
	samples                 []sample
	attempts                int64         // of the load's calls
	paused                  time.Duration // the longest time for which the client's process did not get to run
}

// survive plays a scenario.
func (w *world) survive(s scenario) (*observation, error) {
	c, err := w.cluster(s.cluster)
	if err != nil {
		return nil, err
	}
	return c.survive(s)
}

func (c *cluster) survive(s scenario) (*observation, error) {
	o := &observation{processes: min(len(c.clients()), cmp.Or(s.callers, callers))}
	if err := c.choose(&s, o); err != nil {
		return nil, err
	}
	if s.began != nil {
		s.began(o)
	}
	before, err := c.used()
	if err != nil {
		return nil, err
	}
	if err := c.begin(loadOptions{Callers: cmp.Or(s.callers, callers), Rate: o.rate, Again: s.again, Open: s.open}); err != nil {
		return nil, err
	}
	if err := c.pass(&s, o); err != nil {
		return nil, err
	}
	l, files, err := c.end()
	if err != nil {
		return nil, err
	}
	o.samples, o.paused = l.Samples, l.Paused
	after, err := c.used()
	if err != nil {
		return nil, err
	}
	o.attempts = after.Attempts - before.Attempts
	return o, c.join(o, files, s.files)
}

// How long calls are made before the load, to connect and to measure the capacity. The latter
// needs more calls at a time than there are callers: a handler that sleeps would bound it
// otherwise, and not the machine.
const (
	warming      = 200 * time.Millisecond
	measuring    = 3 * time.Second
	defaultDepth = 4
)

// choose chooses the rate of the load. If that is a share of the capacity, it measures the
// capacity first, with the clients, connections and calls of the load.
func (c *cluster) choose(s *scenario, o *observation) error {
	n := cmp.Or(s.callers, callers)
	if _, err := c.measure(n, warming); err != nil { // so that there are connections
		return err
	}
	if o.rate = c.o.Load.Rate; o.rate == 0 {
		if s.laden {
			if err := s.fault(c); err != nil {
				return fmt.Errorf("make the fault while the capacity is measured: %w", err)
			}
		}
		capacity, err := c.measure(n*cmp.Or(s.depth, defaultDepth), min(c.o.phase(), measuring))
		if err != nil {
			return err
		}
		if s.laden {
			err = s.heal(c)
		} else {
			capacity, err = c.measureOpen(n, capacity)
		}
		if err != nil {
			return fmt.Errorf("measure the capacity: %w", err)
		}
		o.capacity, o.rate = capacity, capacity*cmp.Or(s.share, c.o.Load.Share)
	}
	if s.most > 0 && o.rate > s.most {
		o.rate, o.most = s.most, s.most
	}
	return nil
}

// measureOpen returns the capacity of the machine for calls that become due one by one. most is
// what callers reach that make one call after the other: these come in groups, so that a wake-up or
// a write serves several. The load has a third of that for a while, and the capacity is the rate at
// which the processors would have nothing left to do.
func (c *cluster) measureOpen(callers int, most float64) (float64, error) {
	rate := most / 3
	if err := c.begin(loadOptions{Callers: callers, Rate: rate}); err != nil {
		return 0, err
	}
	busy, err := busyDuring(func() error { return c.sleep(min(c.o.phase(), measuring)) })
	if err != nil {
		return 0, err
	}
	if _, _, err := c.end(); err != nil {
		return 0, err
	}
	return min(most, rate/max(busy, 1./3)), nil
}

// pass waits until the phases are over.
func (c *cluster) pass(s *scenario, o *observation) error {
	o.began = time.Now()
	if err := c.sleep(c.o.phase()); err != nil {
		return err
	}
	o.fault = time.Now()
	if err := s.fault(c); err != nil {
		return fmt.Errorf("make the fault: %w", err)
	}
	if err := c.sleep(time.Until(o.fault.Add(cmp.Or(s.lasts, c.o.phase())))); err != nil {
		return err
	}
	o.heal = time.Now()
	if err := s.heal(c); err != nil {
		return fmt.Errorf("take the fault back: %w", err)
	}
	if err := c.sleep(time.Until(o.heal.Add(cmp.Or(s.quiet, c.o.phase())))); err != nil {
		return err
	}
	o.end = time.Now()
	return nil
}

// join joins the records of servers and clients. The files own are those of the load.
func (c *cluster) join(o *observation, own, others []string) (err error) {
	if o.calls, err = readCalls(own); err != nil {
		return err
	}
	all, err := readCalls(append(slices.Clone(c.files), others...))
	if err != nil {
		return err
	}
	if o.executions, err = ledger.Executions(c.books()); err != nil {
		return err
	}
	o.verdict = ledger.Check(all, o.executions)
	return nil
}

// stretch holds the results of calls that were due in an interval.
type stretch struct {
	calls, ok int
	took      []time.Duration // of successful calls, from when they were due, sorted
}

// between returns the stretch of the calls due between two times for which which is true.
func (o *observation) between(from, to time.Time, which func(*ledger.Call) bool) (s stretch) {
	for i := range o.calls {
		c := &o.calls[i]
		if c.Due < from.UnixNano() || c.Due >= to.UnixNano() || which != nil && !which(c) {
			continue
		}
		s.calls++
		if c.Outcome == ledger.OK {
			s.ok++
			s.took = append(s.took, time.Duration(c.Ended-c.Due))
		}
	}
	slices.Sort(s.took)
	return s
}

// medianSecond returns the median of a quantile of the latencies in each second between two times.
// The last second may be longer.
func (o *observation) medianSecond(from, to time.Time, q float64) time.Duration {
	var all []time.Duration
	for next := from; next.Before(to); from = next {
		if next = from.Add(time.Second); to.Sub(next) < time.Second {
			next = to
		}
		if s := o.between(from, next, nil); len(s.took) > 0 {
			all = append(all, s.at(q))
		}
	}
	slices.Sort(all)
	return quantile(all, 0.5)
}

// reached returns how many replies per second came in the phase before the fault.
func (o *observation) reached() float64 {
	n := count(o.calls, func(c *ledger.Call) bool {
		return c.Outcome == ledger.OK && c.Ended >= o.began.UnixNano() && c.Ended < o.fault.UnixNano()
	})
	return float64(n) / o.fault.Sub(o.began).Seconds()
}

// lag returns a quantile of the time by which calls began later than they were due, in the phase
// before the fault: how late the clients are that make the load.
func (o *observation) lag(q float64) time.Duration {
	var late []time.Duration
	for i := range o.calls {
		if c := &o.calls[i]; c.Due >= o.began.UnixNano() && c.Due < o.fault.UnixNano() {
			late = append(late, time.Duration(c.Began-c.Due))
		}
	}
	slices.Sort(late)
	return quantile(late, q)
}

// at returns a quantile of the latencies, 0 where there are none.
func (s *stretch) at(q float64) time.Duration { return quantile(s.took, q) }

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

func idempotent(c *ledger.Call) bool { return c.Idempotent }
func plain(c *ledger.Call) bool      { return !c.Idempotent }

// failed returns the failed calls for which which is true.
func (o *observation) failed(which func(*ledger.Call) bool) (all []ledger.Call) {
	for _, c := range o.calls {
		if c.Outcome != ledger.OK && (which == nil || which(&c)) {
			all = append(all, c)
		}
	}
	return all
}

// count returns how many of the calls are so.
func count(calls []ledger.Call, is func(*ledger.Call) bool) (n int) {
	for i := range calls {
		if is(&calls[i]) {
			n++
		}
	}
	return n
}

// open returns how many calls were open at some time from one moment to another.
func (o *observation) open(from, to time.Time, which func(*ledger.Call) bool) int {
	return count(o.calls, func(c *ledger.Call) bool {
		return which(c) && c.Began <= to.UnixNano() && from.UnixNano() < c.Ended
	})
}

// openCalls are the numbers of calls that were open, over time.
type openCalls struct {
	at []int64 // Unix times in nanoseconds, sorted
	n  []int   // n[i] calls were open from at[i] to at[i+1]
}

// opened returns how many calls of the load were open at which time.
func (o *observation) opened() (all openCalls) {
	type change struct {
		at int64
		by int
	}
	changes := make([]change, 0, 2*len(o.calls))
	for i := range o.calls {
		c := &o.calls[i]
		changes = append(changes, change{c.Began, 1}, change{c.Ended, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { // of the same time, the beginnings first
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.by, a.by))
	})
	n := 0
	for _, c := range changes {
		n += c.by
		all.at, all.n = append(all.at, c.at), append(all.n, n)
	}
	return all
}

// most returns how many calls were open at a time, at most, from one time to another.
func (a *openCalls) most(from, to int64) (n int) {
	first, found := slices.BinarySearch(a.at, from)
	if !found && first > 0 {
		first-- // was the last change before
	}
	for i := first; i < len(a.at) && a.at[i] <= to; i++ {
		n = max(n, a.n[i])
	}
	return n
}

// The steps and the window in which a rate is measured.
const (
	rateStep   = 100 * time.Millisecond
	rateWindow = time.Second
)

// usedAgain returns how long after a moment a server executed the first call that was due after
// it; false: never.
func (o *observation) usedAgain(name string, from time.Time) (took time.Duration, ok bool) {
	due := make(map[ledger.ID]bool)
	for i := range o.calls {
		if o.calls[i].Due >= from.UnixNano() {
			due[o.calls[i].ID] = true
		}
	}
	for i := range o.executions {
		e := &o.executions[i]
		if e.Server != name || !due[e.ID] {
			continue
		}
		if after := time.Duration(e.At - from.UnixNano()); !ok || after < took {
			took, ok = after, true
		}
	}
	return took, ok
}

// lastFailed returns how long after the fault the last failed call began, among the calls that
// began during the fault.
func (o *observation) lastFailed() (after time.Duration) {
	for i := range o.calls {
		c := &o.calls[i]
		if c.Outcome != ledger.OK && c.Began < o.heal.UnixNano() {
			after = max(after, time.Duration(c.Began-o.fault.UnixNano()))
		}
	}
	return after
}

// longest returns the time of the call that took longest.
func (o *observation) longest() (most time.Duration) {
	for i := range o.calls {
		most = max(most, time.Duration(o.calls[i].Ended-o.calls[i].Began))
	}
	return most
}

// back returns how long after a moment the first second began in which replies came at so large a
// share of the offered rate, of calls that which says; false: never.
func (o *observation) back(from time.Time, share float64, which func(*ledger.Call) bool) (time.Duration, bool) {
	steps := int(o.end.Sub(from) / rateStep)
	got := make([]float64, max(steps, 0))
	for i := range o.calls {
		c := &o.calls[i]
		if c.Outcome != ledger.OK || c.Ended < from.UnixNano() || which != nil && !which(c) {
			continue
		}
		if n := (c.Ended - from.UnixNano()) / int64(rateStep); n < int64(len(got)) {
			got[n]++
		}
	}
	window := int(rateWindow / rateStep)
	for i := 0; i+window <= len(got); i++ {
		sum := 0.0
		for _, n := range got[i : i+window] {
			sum += n
		}
		if sum >= share*o.rate*rateWindow.Seconds() {
			return time.Duration(i) * rateStep, true
		}
	}
	return 0, false
}

// late returns by how much a call outlived its deadline, the most of all.
func (o *observation) late(timeout time.Duration) time.Duration { return max(0, o.longest()-timeout) }

// by reports whether a call ended with the code.
func by(code anser.Code) func(*ledger.Call) bool {
	return func(c *ledger.Call) bool { return c.Outcome != ledger.OK && c.Code == uint8(code) }
}

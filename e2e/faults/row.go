package main

import (
	"context"
	"errors"
	"time"

	"github.com/anser-rpc/anser/e2e/faults/ledger"
	"github.com/anser-rpc/anser/internal/netns"
)

// row is a fault with the guarantees that must hold during it. Each file has the rows of a family.
type row struct {
	name  string
	fault string // in words
	bar   string // the guarantees, in words
	needs need
	run   func(*world) (*result, error)
	peers bool // other frameworks can be played in it too
}

// need is what a row cannot be played without.
type need int

const (
	nothing   need = iota
	hosts          // network namespaces
	tables         // and packets that can be dropped
	rootRight      // the right to mount a file system
	ownGroup       // a cgroup with a limit of memory
)

// missing returns what is missing for the row, or nil.
func (n need) missing(o options) error {
	switch {
	case n == nothing:
		return nil
	case n == ownGroup:
		return checkMemoryGroup()
	case o.Loopback:
		return errors.New("--loopback: this row needs hosts of its own")
	case n == tables:
		return netns.CheckTables()
	default:
		return netns.Check()
	}
}

// rows are all rows, in the order in which they are run and reported.
func rows() []row {
	var all []row
	for _, family := range [][]row{
		processRows(), registryRows(), networkRows(), lossRows(), proxyRows(), keyRows(), diskRows(), tlsRows(), loadRows(), streamRows(), scaleRows(), crowdRows(), limitRows(), gatewayRows(), gatewayLoadRows(),
	} {
		all = append(all, family...)
	}
	return all
}

// How a row ended.
const (
	held   = "held"
	lost   = "lost"    // a bar was missed
	broken = "broken"  // a guarantee was violated: not a limit in time, but a property of every call
	notRun = "not run" // and why
)

// result is what a row showed.
type result struct {
	Row     string    `json:"row"`
	Peer    string    `json:"peer,omitempty"` // a framework that is not Anser
	Fault   string    `json:"fault"`
	Bar     string    `json:"bar"`
	State   string    `json:"state"`
	Why     string    `json:"why,omitempty"` // it was not run, or broke off
	Began   time.Time `json:"began,omitzero"`
	Seconds float64   `json:"phase_s,omitempty"` // of each phase
	Hosts   bool      `json:"hosts"`             // processes were on hosts of their own
	Figures []figure  `json:"figures,omitempty"`
	// Errors are some that calls had, and Violations some promises that were broken.
	Errors     []string `json:"errors,omitempty"`
	Violations []string `json:"violations,omitempty"`
	machine
}

// figure is something that was measured. Without a bar it is there to be read.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Bar   string  `json:"bar,omitempty"`
	Held  bool    `json:"held,omitempty"`
	// Promise marks a bar that has nothing to do with time: missing it is a bug.
	Promise bool `json:"promise,omitempty"`
}

// fact adds a figure without a bar.
func (r *result) fact(name string, value float64, unit string) {
	r.Figures = append(r.Figures, figure{Name: name, Value: value, Unit: unit})
}

// timed adds a figure with a limit that depends on the machine and its load.
func (r *result) timed(name string, value float64, unit, bar string, ok bool) {
	r.Figures = append(r.Figures, figure{Name: name, Value: value, Unit: unit, Bar: bar, Held: ok})
}

// promise adds a figure with a limit that applies on every machine.
func (r *result) promise(name string, value float64, unit, bar string, ok bool) {
	r.Figures = append(r.Figures, figure{Name: name, Value: value, Unit: unit, Bar: bar, Held: ok, Promise: true})
}

// none promises that there is nothing of a kind.
func (r *result) none(name string, n int) { r.promise(name, float64(n), "", "0", n == 0) }

// noWrongReplies checks that no call received the reply to another one. The ledger checks that,
// too, among other things.
func (r *result) noWrongReplies(o *observation) {
	r.none("wrong replies", count(o.calls, func(c *ledger.Call) bool { return c.Mixed }))
}

// within adds a time with its bound. Where ok is false it never happened.
func (r *result) within(name string, took, bound time.Duration, ok bool) {
	value := took.Seconds()
	if !ok {
		value = -1
	}
	r.timed(name, value, "s", "at most "+bound.String(), ok && took <= bound)
}

// outlived adds the time by which a call outlived its deadline. A process that the machine pauses
// sees a deadline no earlier than that.
func (r *result) outlived(name string, o *observation, by time.Duration) {
	r.timed(name, by.Seconds(), "s", "at most 50 ms more than the longest pause", by <= 50*time.Millisecond+o.paused)
}

// common adds what holds in every row: the ledger, and what the load was.
func (r *result) common(o *observation) {
	r.offered(o)
	r.none("promises of the ledger broken", o.verdict.Broken)
	r.Violations = o.verdict.Violations
}

// Names of figures that the report looks for.
const (
	clientProcesses  = "client processes"
	rateOffered      = "rate offered"
	capacityMeasured = "capacity measured"
)

// offered adds what the load was, and some of its errors.
func (r *result) offered(o *observation) {
	r.fact("calls", float64(len(o.calls)), "")
	r.fact(clientProcesses, float64(o.processes), "")
	r.fact(rateOffered, o.rate, "calls/s")
	if o.capacity > 0 {
		r.fact(capacityMeasured, o.capacity, "calls/s")
	}
	if o.most > 0 {
		r.fact("bound of the row for the rate", o.most, "calls/s")
	}
	reached := o.reached()
	r.timed("rate reached before", reached, "calls/s", "at least 95 % of the rate offered", reached >= 0.95*o.rate)
	r.fact("p99 by which calls began late before", millis(o.lag(0.99)), "ms")
	before, during := o.between(o.began, o.fault, nil), o.between(o.fault, o.heal, nil)
	r.fact("p50 before", millis(before.at(0.5)), "ms")
	r.fact("p99 before", millis(before.at(0.99)), "ms")
	r.fact("p50 during", millis(during.at(0.5)), "ms")
	r.fact("p99 during", millis(during.at(0.99)), "ms")
	r.fact("longest pause of a client's process, made by the machine", millis(o.paused), "ms")
	r.errors(o, o.samples)
}

// errors adds the errors that calls had.
func (r *result) errors(o *observation, all []sample) {
	for i := range all {
		r.Errors = append(r.Errors, all[i].line(o.began))
	}
}

// allSucceeded promises that no call failed.
func (r *result) allSucceeded(o *observation) { r.noFailures("failed calls", len(o.failed(nil)), o) }

// tooLong is a pause after which calls may fail with any framework: half of the time of a
// keepalive, a deadline or a stalled write has passed without a chance to act.
const tooLong = 2 * time.Second

// noFailures promises that no calls of a kind failed. Where the machine has paused for too long
// that is a bar of time.
func (r *result) noFailures(name string, n int, o *observation) {
	if o.paused < tooLong {
		r.none(name, n)
		return
	}
	r.timed(name, float64(n), "", "0", n == 0)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// is reports whether a call had the outcome.
func is(o ledger.Outcome) func(*ledger.Call) bool {
	return func(c *ledger.Call) bool { return c.Outcome == o }
}

// play plays the row and judges it.
func (p play) play(ctx context.Context) *result {
	r, o := p.row, p.o
	out := &result{Row: r.name, Fault: r.fault, Bar: r.bar, Peer: peerNames[o.peer]}
	if err := r.needs.missing(o); err != nil {
		out.State, out.Why = notRun, err.Error()
		return out
	}
	began := time.Now()
	from, measured := read()
	got, ranOnHosts, err := playIn(ctx, r, o)
	if got != nil {
		got.Row, got.Fault, got.Bar, got.Peer = out.Row, out.Fault, out.Bar, out.Peer
		out = got
	}
	out.Began, out.Seconds, out.Hosts = began.UTC().Truncate(time.Second), o.Seconds, ranOnHosts
	if to, ok := read(); ok && measured { // all processes of the row have ended
		others := from.others(to)
		out.Others = &others
	}
	out.State = out.judge()
	if err != nil {
		out.State, out.Why = out.failed(err)
	}
	return out
}

func playIn(ctx context.Context, r row, o options) (got *result, onHosts bool, err error) {
	if r.needs == ownGroup {
		o.Loopback = true // the program ip hides cgroups from the processes it starts on a host
	}
	w, err := newWorld(ctx, o)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	got, err = r.run(w)
	return got, w.net != nil, err
}

// judge derives the result of the row from its figures.
func (r *result) judge() string {
	state := held
	for _, f := range r.Figures {
		switch {
		case f.Bar == "" || f.Held:
		case f.Promise:
			return broken
		default:
			state = lost
		}
	}
	return state
}

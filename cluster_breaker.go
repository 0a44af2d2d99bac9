package anser

import (
	"fmt"
	"slices"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// Breaker configures the circuit breakers of a client: one per instance and method. It is an option
// of [Dial]. Without it the defaults apply; a field that is zero means its default.
//
// A breaker opens when at least Calls attempts of the method ended at the instance within Window,
// and a fraction of at least Ratio of them failed. Calls of the method then go to other instances.
// After Open, single calls probe the instance; three successes close the breaker, and a failure
// keeps it open for twice as long as before, up to four times Open. When the breakers of a method
// are open at all instances, they are ignored: a breaker never makes the last instance unreachable.
//
// An attempt fails when the instance refuses it because of its own state, when the connection is
// lost, when no reply arrives in time, and when the handler returns an error with one of Codes.
// Calls that the caller cancelled and calls that are invalid do not count. Neither do calls that an
// instance refuses because it is overloaded: sending them elsewhere would overload other instances.
type Breaker struct {
	Off    bool          // disables breakers
	Ratio  float64       // from 0 to 1; the default is 0.5
	Calls  int           // the default is 200
	Window time.Duration // at least 100 ms; the default is 10 s
	Open   time.Duration // the default is 2 s
	Codes  []Code        // handler errors that count; nil means Internal, the code of a panic too
}

// DialOption makes a Breaker an option of [Dial].
func (Breaker) DialOption() {}

// set stores the option.
func (b Breaker) set(o *dialOptions) {
	d := defaultBreaker()
	d.Off = b.Off
	if b.Ratio != 0 {
		d.Ratio = b.Ratio
	}
	if b.Calls != 0 {
		d.Calls = b.Calls
	}
	if b.Window != 0 {
		d.Window = b.Window
	}
	if b.Open != 0 {
		d.Open = b.Open
	}
	if b.Codes != nil {
		d.Codes = slices.Clone(b.Codes)
	}
	if o.wants(d.Ratio > 0 && d.Ratio <= 1, "anser.Breaker: the Ratio is %v: want more than 0 and at most 1", d.Ratio) &&
		o.wants(d.Calls > 0, "anser.Breaker: Calls is %d: want at least 1", d.Calls) &&
		o.wants(d.Window >= minHealthWindow, "anser.Breaker: the Window is %v: want at least %v", d.Window, minHealthWindow) &&
		o.wants(d.Open > 0, "anser.Breaker: Open is %v: want a time above 0", d.Open) {
		o.breaker = d
	}
}

const minHealthWindow = 100 * time.Millisecond

func defaultBreaker() Breaker {
	return Breaker{Ratio: 0.5, Calls: 200, Window: 10 * time.Second, Open: 2 * time.Second, Codes: []Code{Internal}}
}

func (b *Breaker) counts(code Code) bool { return slices.Contains(b.Codes, code) }

// BreakerState is the state of a circuit breaker.
type BreakerState uint8

// The states of a breaker.
const (
	StateClosed   BreakerState = iota // all calls pass
	StateOpen                         // no call passes
	StateHalfOpen                     // single calls pass, as probes
)

var breakerStateNames = [...]string{"closed", "open", "half open"}

// String returns the state in words.
func (s BreakerState) String() string {
	if int(s) < len(breakerStateNames) {
		return breakerStateNames[s]
	}
	return fmt.Sprintf("breaker state %d", uint8(s))
}

// MarshalText writes the state in words, for JSON and logs.
func (s BreakerState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// BreakerStatus describes a breaker that is not closed or has counted failures.
type BreakerStatus struct {
	Method string
	State  BreakerState
	Calls  int64     // attempts within the window
	Failed int64     // of these, attempts that failed
	Until  time.Time // when an open breaker lets the first probe pass
}

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
func (cl *cluster) checkBreakerLocked(e *endpoint, t *methodCounters, sum counts, now mono.Time) {
	o, b := &cl.client.o.breaker, &t.breaker
	b.sum = sum
	switch n := sum.answered + sum.failed; {
	case b.state == StateClosed && len(cl.endpoints) > 1 && n >= int64(o.Calls) && float64(sum.failed) >= o.Ratio*float64(n):
		if b.failed > 0 && now.Sub(b.since) > breakerMemory*o.Open {
			b.failed = 0
		}
		cl.openLocked(e, t, fmt.Sprintf("%d of %d calls failed", sum.failed, n), now)
	case b.state == StateOpen && now >= b.until:
		b.state, b.since, b.trials = StateHalfOpen, now, probes{}
		t.good.Store(0)
		t.bad.Store(0)
		t.half.Store(true)
		cl.noteLocked(e, BreakerHalfOpen, t.method.name, "single calls try it", 0)
	case b.state == StateHalfOpen && t.bad.Load() > 0:
		cl.openLocked(e, t, "a probe failed", now)
	case b.state == StateHalfOpen && t.good.Load() >= goodTrials:
		cl.closeBreakerLocked(e, t, fmt.Sprintf("%d probes succeeded", goodTrials), now)
	}
}

// breakerMemory is how long a closed breaker remembers that it was open, in multiples of its first
// open time.
const breakerMemory = 10

// openLocked opens the breaker; each time in a row it stays open for longer.
func (cl *cluster) openLocked(e *endpoint, t *methodCounters, why string, now mono.Time) {
	b := &t.breaker
	d := cl.client.o.breaker.Open << min(b.failed, 2)
	first := b.state == StateClosed
	b.state, b.since, b.until = StateOpen, now, now.Add(d)
	b.failed++
	b.why = why
	t.half.Store(false)
	t.forget()
	cl.noteLocked(e, BreakerOpened, t.method.name, why, d)
	if first {
		cl.broken[t.method] = append(cl.broken[t.method], e)
		cl.healthChanged = true
	}
}

func (cl *cluster) closeBreakerLocked(e *endpoint, t *methodCounters, why string, now mono.Time) {
	t.breaker.state, t.breaker.since = StateClosed, now
	t.half.Store(false)
	t.forget()
	cl.dropBrokenLocked(e, t.method)
	cl.noteLocked(e, BreakerClosed, t.method.name, why, 0)
}

// dropBrokenLocked removes e from the endpoints whose breaker for the method is not closed.
func (cl *cluster) dropBrokenLocked(e *endpoint, m *clientMethod) {
	list := slices.DeleteFunc(slices.Clone(cl.broken[m]), func(o *endpoint) bool { return o == e })
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
func (cl *cluster) closeBreakersLocked(e *endpoint, why string, now mono.Time) {
	for m, list := range cl.broken {
		if slices.Contains(list, e) {
			cl.closeBreakerLocked(e, e.methodCounters(m), why, now)
		}
	}
}

// breakersLocked returns the breakers of e that are not closed or have counted a failure.
func (e *endpoint) breakersLocked(now mono.Time) (all []BreakerStatus) {
	e.conduct.each(func(t *methodCounters) {
		if t.breaker.state == StateClosed && t.breaker.sum.failed == 0 {
			return
		}
		b := &t.breaker
		s := BreakerStatus{Method: t.method.name, State: b.state, Calls: b.sum.answered + b.sum.failed, Failed: b.sum.failed}
		if b.state == StateOpen {
			s.Until = time.Now().Add(b.until.Sub(now))
		}
		all = append(all, s)
	})
	return all
}

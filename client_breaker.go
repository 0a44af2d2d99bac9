package anser

import (
	"fmt"
	"slices"
	"time"

	"github.com/anser-rpc/anser/internal/cluster"
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

// inCluster returns the options as the cluster has them.
func (b *Breaker) inCluster() cluster.BreakerOptions {
	o := cluster.BreakerOptions{Off: b.Off, Ratio: b.Ratio, Calls: b.Calls, Window: b.Window, Open: b.Open}
	for _, code := range b.Codes {
		o.Codes = append(o.Codes, uint8(code))
	}
	return o
}

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

// UnmarshalText parses the output of MarshalText.
func (s *BreakerState) UnmarshalText(text []byte) error {
	return parseName(s, breakerStateNames[:], "breaker state", text)
}

// BreakerStatus describes a breaker that is not closed or has counted failures.
type BreakerStatus struct {
	Method string
	State  BreakerState
	Calls  int64     // attempts within the window
	Failed int64     // of these, attempts that failed
	Until  time.Time // when an open breaker lets the first probe pass
}

// breakerStates are the states as the cluster has them.
var breakerStates = [...]BreakerState{cluster.Closed: StateClosed, cluster.Open: StateOpen, cluster.HalfOpen: StateHalfOpen}

// breakerStatuses returns what the cluster knows about breakers.
func breakerStatuses(list []cluster.BreakerStatus, now mono.Time) (all []BreakerStatus) {
	for _, b := range list {
		s := BreakerStatus{Method: b.Method, State: breakerStates[b.State], Calls: b.Calls, Failed: b.Failed}
		if s.State == StateOpen {
			s.Until = clockTime(b.Until, now)
		}
		all = append(all, s)
	}
	return all
}

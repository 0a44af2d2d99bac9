package balance

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// Endpoint is one instance from the view of a balancer: its data in the registry and the
// measurements of its calls. The client keeps one Endpoint per instance for as long as it knows
// the instance, so the measurements survive a change of the list. All methods are safe for
// concurrent use; an Endpoint is created by NewEndpoint and must not be copied.
//
// Begin and one of End, Fail and Abort surround every attempt of every call, so they do as little
// as possible: one atomic addition each, and a store only if a latency sample changes something.
type Endpoint struct {
	// The fields written by attempts come first and alone, so that endpoints share no cache line
	// and reading the instance does not wait for the attempts.
	active  atomic.Int64
	latency atomic.Uint64 // figures, packed
	probed  atomic.Uint32 // tick of the latest probe; 0: never
	_       [44]byte

	instance atomic.Pointer[registry.Instance]
	cold     atomic.Uint32 // the part of its weight that does not count, in percent
	chosen   atomic.Uint64 // written by Sticky: the largest number in a list marks its latest choice
	_        [40]byte
}

// NewEndpoint returns an endpoint without measurements.
func NewEndpoint(in registry.Instance) *Endpoint {
	e := new(Endpoint)
	e.SetInstance(in)
	return e
}

// Instance returns the endpoint's data in the registry. The result must not be modified.
func (e *Endpoint) Instance() *registry.Instance { return e.instance.Load() }

// SetInstance replaces the endpoint's data in the registry. A new weight takes effect when a
// picker is built.
func (e *Endpoint) SetInstance(in registry.Instance) { in = in.Clone(); e.instance.Store(&in) }

// SetWarmth sets the effective part of the endpoint's weight in percent, from 1 to 100; it is 100
// initially. A client starts new and returning instances with a small part: see anser.SlowStart.
// It takes effect when a picker is built.
func (e *Endpoint) SetWarmth(percent int) { e.cold.Store(uint32(100 - min(max(percent, 1), 100))) }

// Warmth returns the value of SetWarmth.
func (e *Endpoint) Warmth() int { return 100 - int(e.cold.Load()) }

// weight returns the effective weight in hundredths: at least 1, and 100 times the instance's
// weight when the endpoint is warm.
func (e *Endpoint) weight() uint64 {
	w := e.Instance().EffectiveWeight()
	return uint64(min(max(w, 1), registry.MaxWeight)) * uint64(e.Warmth())
}

// Active returns the number of attempts in flight.
func (e *Endpoint) Active() int64 { return e.active.Load() }

// Begin counts the start of an attempt; it must be followed by one End, Fail or Abort.
func (e *Endpoint) Begin() { e.active.Add(1) }

// Abort counts the end of an attempt without information about the endpoint, for example one that
// its caller cancelled.
func (e *Endpoint) Abort() { e.active.Add(-1) }

// The minimum latency recorded after one failure, and the maximum after any number of them.
const (
	minFailure = time.Millisecond
	maxFailure = 10 * time.Second
)

// Fail counts the end of an attempt, at now, that the endpoint did not run: it could not be
// reached, the connection broke, or it rejected the work. Such attempts return sooner than
// successful ones, and would attract more calls to a dead endpoint than to a live one; so each
// doubles the recorded latency, from a millisecond up to ten seconds. The next successful probe
// resets it.
//
// For an attempt that exceeded its deadline, call End with the time that it took.
func (e *Endpoint) Fail(now int64) {
	e.active.Add(-1)
	e.Observe(now, min(max(2*e.Latency(), minFailure), maxFailure))
}

// End counts the end of an attempt that took d and ended at now, a monotonic time in nanoseconds
// with the same zero for all endpoints of the process.
func (e *Endpoint) End(now int64, d time.Duration) {
	e.active.Add(-1)
	e.Observe(now, d)
}

// decay is the time constant of the latency average.
const decay = 10 * time.Second

// Observe adds a latency sample without counting the end of an attempt.
//
// The average is the peak EWMA of Finagle: it jumps up to a slow sample at once and decays with a
// time constant of ten seconds. The first sample after a probe replaces it: otherwise an endpoint
// that was avoided for being slow would keep its high average for a minute after its recovery.
// Time is measured in ticks of a millisecond, and of the samples of one tick only the slowest
// counts: the average needs no more, and so most calls store nothing.
func (e *Endpoint) Observe(now int64, d time.Duration) {
	sample := figures{latency: float32(max(d, 1)), tick: tickOf(now)}
	for {
		word := e.latency.Load()
		old, next := unpack(word), sample
		if old.known() && sample.latency < old.latency {
			if !later(sample.tick, old.tick) {
				return
			}
			if probe := e.probed.Load(); probe == 0 || !later(probe, old.tick) {
				w := weightAfter(sample.tick - old.tick)
				next.latency = old.latency*w + sample.latency*(1-w)
			}
		}
		// Concurrent samples must not overwrite each other: a lost peak would send calls to an
		// endpoint that has just stalled.
		if e.latency.CompareAndSwap(word, next.pack()) {
			return
		}
	}
}

// Renew lets the next sample replace the average, at now: the endpoint is tried again after it was
// avoided, and older measurements no longer apply.
func (e *Endpoint) Renew(now int64) { e.probed.Store(max(tickOf(now), 1)) }

// Latency returns the average latency, or 0 before the first sample. It has seven significant
// digits.
func (e *Endpoint) Latency() time.Duration { return time.Duration(unpack(e.latency.Load()).latency) }

// figures holds the average latency of an endpoint and the time of its latest sample, which fit
// one atomic word. The zero value means that there was no sample.
type figures struct {
	latency float32 // nanoseconds, at least 1
	tick    uint32
}

func (f figures) known() bool { return f.latency != 0 }

func (f figures) pack() uint64 { return uint64(math.Float32bits(f.latency))<<32 | uint64(f.tick) }

func unpack(word uint64) figures {
	return figures{latency: math.Float32frombits(uint32(word >> 32)), tick: uint32(word)}
}

// A tick is 2^20 nanoseconds, just over a millisecond. Ticks wrap around after 52 days and are
// compared like TCP's sequence numbers. An endpoint without calls for 26 days may look fresh,
// which costs it one probe.
const tickShift = 20

func tickOf(now int64) uint32 { return uint32(now >> tickShift) }

// ticks is the number of ticks in d.
func ticks(d time.Duration) uint32 { return uint32(d >> tickShift) }

// later reports whether tick a comes after tick b.
func later(a, b uint32) bool { return int32(a-b) > 0 }

// since returns how many ticks have passed from then to now, or 0 when then is later.
func since(then, now uint32) uint32 {
	if later(then, now) {
		return 0
	}
	return now - then
}

// weightAfter returns the weight of an average relative to a new sample after dt: about
// exp(-dt/decay). The error is below 1 % up to three seconds, the result is never negative, and it
// takes a division where math.Exp takes a call.
func weightAfter(dt uint32) float32 {
	x := float32(dt) / float32(decay>>tickShift)
	return 1 / (1 + x + x*x/2)
}

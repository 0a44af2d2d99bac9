// Package placement decides whether a method runs on the goroutine that reads its connection, from
// what running it has been like.
package placement

import (
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysusage"
)

// Learner decides for one method. Three things keep a method off the reader goroutine:
//
//   - its average: handlers that use the processor for long should use all of them;
//   - handoffs: a method that now and then blocks has a small average, and still holds up the calls
//     behind it;
//   - rare long runs, if the handler has caused them.
//
// The duration of a single run says little, since a run that the operating system interrupted looks
// like one that slept.
//
// The zero value is ready for use. All methods are safe for concurrent use, but for Handoff. The
// average is updated without a lock: a lost update costs one sample.
type Learner struct {
	average atomic.Int64 // nanoseconds of a run, exponentially weighted
	until   mono.Atomic  // the time until which the method runs on workers

	// Of Handoff.
	since    mono.Time     // of the first handoff that counts
	calls    int64         // of the method, then
	handoffs int64         // while the process kept its processors
	starved  int64         // the others
	penalty  time.Duration // the last time on workers

	long longRuns
}

// SampleEvery is the number of runs of which one should be timed: reading the clock is not free.
const SampleEvery = 8

const (
	slowAverage  = 50 * time.Microsecond
	averageShare = 32                     // a new run's share of the average is 1/averageShare
	maxSample    = 200 * time.Microsecond // a longer run counts as this in the average
	handoffSpan  = time.Second            // in which handoffs are counted
	maxHandoffs  = 3                      // least number of handoffs that are too many
	handoffShare = 2000                   // and more than one in handoffShare calls
	firstPenalty = 250 * time.Millisecond
	maxPenalty   = 30 * time.Second
)

// Inline reports whether the method may run on the goroutine that reads the connection.
func (l *Learner) Inline(now mono.Time) bool {
	return now >= l.until.Load() && l.Short()
}

// Short reports whether the average run is short, although some may have been long.
func (l *Learner) Short() bool { return l.average.Load() < int64(slowAverage) }

// Average returns the average time of a run, 0 before the first one. A run counts as maxSample at
// most.
func (l *Learner) Average() time.Duration { return time.Duration(l.average.Load()) }

// Begin starts a timed run. weight is the number of runs for which it counts.
func (l *Learner) Begin(now mono.Time, weight int64) Run { return l.long.begin(now, weight) }

// End ends a timed run on the goroutine that began it. calls returns how often the method was
// called so far, and is asked after long runs only. handedOff says that Handoff was called for the
// run.
func (l *Learner) End(r *Run, now mono.Time, calls func() int64, handedOff bool) {
	took := now.Sub(r.began)
	average := l.average.Load()
	if !handedOff {
		l.Note(took)
	}
	if took < longRun {
		return
	}
	var long, proven int64
	if !handedOff {
		long = r.Weight
	}
	if r.proven(took) {
		proven = r.Weight
	}
	if process.marked(min(took, excused)) { // the rest of a longer run is long, too
		return
	}
	l.noteLong(now, calls(), average, long, proven)
}

// Note takes the duration of a run into account that End does not know: one on a worker.
func (l *Learner) Note(took time.Duration) {
	old := l.average.Load()
	sample := int64(min(took, maxSample))
	next := old + (sample-old)/averageShare // from 0: the first run is slow, as it makes what is made once
	if next != old {
		l.average.Store(next)
	}
}

// Handoff counts a handler that blocked the reading of its connection, which another goroutine now
// does. calls is how often the method was called so far. After a few handoffs the method is kept
// off the reader goroutines, twice as long as the last time unless it was well for long in between.
// Where the process did not keep its processors, or the garbage collector marks, fast handlers look
// as if they blocked, but not most of them. One goroutine at a time may call it.
func (l *Learner) Handoff(now mono.Time, calls int64, kept bool) {
	marked := process.marked(longRun)
	l.countHandoff(now, calls, kept && !marked)
	if !marked {
		l.noteLong(now, calls, l.average.Load(), 1, 0)
	}
}

func (l *Learner) countHandoff(now mono.Time, calls int64, kept bool) {
	if now.Sub(l.since) > handoffSpan {
		l.since, l.handoffs, l.starved, l.calls = now, 0, 0, calls
	}
	if kept {
		l.handoffs++
	} else {
		l.starved++
	}
	all, made := l.handoffs+l.starved, calls-l.calls
	some := l.handoffs >= maxHandoffs && l.handoffs*handoffShare >= made
	if most := all >= maxHandoffs && all*2 >= made; !some && !most {
		return
	}
	l.handoffs, l.starved, l.calls = 0, 0, calls
	if until := l.until.Load(); l.penalty == 0 || now > until.Add(4*l.penalty) {
		l.penalty = firstPenalty
	} else if now >= until {
		l.penalty = min(2*l.penalty, maxPenalty)
	}
	l.keepOff(now.Add(l.penalty))
}

// noteLong takes a long run into account; see longRuns.note.
func (l *Learner) noteLong(now mono.Time, calls, average, long, proven int64) {
	if long == 0 && proven == 0 {
		return
	}
	if stay := l.long.note(now, calls, time.Duration(average), long, proven, sysusage.CurrentProcess()); stay > 0 {
		l.keepOff(now.Add(stay))
	}
}

// keepOff keeps the method off the reader goroutines until then at least.
func (l *Learner) keepOff(until mono.Time) {
	for old := l.until.Load(); old < until && !l.until.CompareAndSwap(old, until); old = l.until.Load() {
	}
}

package anser

import (
	"sync"
	"sync/atomic"
	"time"
)

// tail finds methods whose runs are short but for a few. Such a method has a small average, and still holds up the
// calls behind each long run on the reader goroutine. See docs/decisions/0042.
//
// A run that the operating system interrupted looks like a long one. So the first long runs only make a method a
// suspect. The timed runs of a suspect also read what their thread has used, which tells the two apart.
type tail struct {
	suspect atomic.Int64 // nanotime until which the timed runs of the method read what their thread has used

	mu     sync.Mutex // guards the fields below; only long runs lock it
	since  int64      // nanotime from which the fields below count
	calls  int64      // of the method, at since
	used   usage      // of the process, at since
	long   runs       // by the clock
	proven runs       // by what their thread has used
	until  int64      // nanotime until which the method runs on workers because of its tail
	stay   int64      // duration of the last stay on workers
}

// runs counts runs.
type runs struct {
	seen   int64
	weight int64 // of those seen: one timed run counts for the others that were not timed
}

// add counts one run that was seen.
func (r *runs) add(weight int64) {
	r.seen++
	r.weight += weight
}

// halve makes old runs count less than new ones.
func (r *runs) halve() { r.seen, r.weight = r.seen/2, r.weight/2 }

// often reports whether there are more than the rate allows in that number of calls.
func (r *runs) often(allowed rate, calls int64) bool {
	return r.seen >= allowed.least && r.weight*allowed.share >= calls
}

// rate is how many long runs a method may have on the reader goroutine: fewer than least, or fewer than one in share
// calls.
type rate struct{ least, share int64 }

var (
	tailRate   = rate{3, 2000}
	returnRate = rate{2, 8000} // soon after a stay on workers, so that a method near tailRate does not go to and fro
)

// usage is what the process has used of the machine.
type usage struct {
	preempted int64 // involuntary switches
	cpu       int64 // nanoseconds
}

// threadUsage is what a thread has used of the machine. The zero value is one that was not read.
type threadUsage struct {
	id        int
	cpu       int64 // nanoseconds
	preempted int64 // involuntary switches
	waited    int64 // voluntary switches
}

const (
	longRun    = time.Millisecond // duration from which a run is long
	tailSpan   = 10 * time.Second // approximate time over which long runs count
	tailDoubt  = 2                // without proofs, more long runs than this times the preemptions that hit the method
	firstStay  = 10 * time.Second // on workers
	maxStay    = 2 * time.Minute
	forcedStop = 10 * time.Millisecond // run time after which the Go runtime takes a goroutine off its thread
)

// proves reports whether a run of the duration d, between the reads t and end, was long because of what the handler
// did: it used the processor, or it waited. A run that the operating system interrupted proves nothing.
func (t *threadUsage) proves(end *threadUsage, d int64) bool {
	switch {
	case t.id == 0 || d < int64(longRun):
		return false
	case t.id != end.id:
		// A goroutine changes its thread when it waits. It also does when its thread was interrupted for so long that
		// the Go runtime takes the goroutine away afterwards.
		return d < int64(forcedStop)
	case end.cpu-t.cpu >= int64(longRun):
		return true
	}
	// A thread that neither waited nor was preempted may have lost its time to another virtual machine.
	return end.preempted == t.preempted && end.waited != t.waited
}

// note takes a long run into account, and returns for how long the method must run on workers. calls is how often the
// method ran so far, average its mean run in nanoseconds before this one. long and proven are the number of calls for
// which this run counts, or 0: proven without a proof, long where the monitor has noted the run before. The fields decay
// when a run is noted, so that methods without long runs pay nothing.
func (t *tail) note(now, calls, average, long, proven int64, used usage) (stay int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now < t.until {
		return 0 // the run began before the method was moved
	}
	allowed, back := tailRate, now < t.until+4*t.stay
	if back {
		allowed = returnRate
	}
	t.decayLocked(now, calls, used)
	if long > 0 {
		t.long.add(long)
	}
	if proven > 0 {
		t.proven.add(proven)
	}
	made := calls - t.calls
	if !t.long.often(allowed, made) {
		return 0
	}
	t.suspect.Store(now + int64(tailSpan))
	if !t.proven.often(allowed, made) && !t.unexplainedLocked(allowed, made, average, used) {
		return 0
	}
	if back {
		t.stay = min(2*t.stay, int64(maxStay))
	} else {
		t.stay = int64(firstStay)
	}
	t.until = now + t.stay
	t.suspect.Store(t.until + 4*t.stay)
	t.since = 0
	return t.stay
}

// decayLocked has old runs count less than new ones.
func (t *tail) decayLocked(now, calls int64, used usage) {
	if t.since == 0 || now-t.since > 4*int64(tailSpan) {
		// Long ago, or never: this run begins a span.
		t.since, t.calls, t.used = now, calls, used
		t.long, t.proven = runs{}, runs{}
	}
	for now-t.since > int64(tailSpan) {
		t.since += (now - t.since) / 2
		t.calls += (calls - t.calls) / 2
		t.used.preempted += (used.preempted - t.used.preempted) / 2
		t.used.cpu += (used.cpu - t.used.cpu) / 2
		t.long.halve()
		t.proven.halve()
	}
}

// unexplainedLocked reports whether there are more long runs than preemptions explain. These hit methods in proportion to
// the processor time that they take, of which method.cost knows the average. Most preemptions are far shorter than a
// long run, so that this decides on quiet machines only, and where threads are not known.
func (t *tail) unexplainedLocked(allowed rate, made, average int64, used usage) bool {
	if seen := (runs{t.long.seen, t.long.seen}); !seen.often(allowed, made) {
		return false
	}
	share := 1.0 // of the method in the time of the process
	if cpu := used.cpu - t.used.cpu; cpu > 0 {
		share = min(1, float64(made*average)/float64(cpu))
	}
	return float64(t.long.seen) > tailDoubt*share*float64(used.preempted-t.used.preempted)
}

// timing is one timed run of a method. The zero value is a run that is not timed.
type timing struct {
	weight int64 // number of runs for which this one counts
	began  int64 // nanotime
	thread threadUsage
}

// begin starts a timed run.
func (m *method) begin(now, weight int64) timing {
	r := timing{weight: weight, began: now}
	if now < m.tail.suspect.Load() {
		r.thread = currentThread()
	}
	return r
}

// end takes the duration of a timed run into account. handedOff says that the monitor has handed its connection over,
// and has noted the run already.
func (m *method) end(r *timing, now int64, handedOff bool) {
	d := now - r.began
	average := m.cost.average.Load()
	if !handedOff {
		m.cost.note(d)
	}
	if d < int64(longRun) {
		return
	}
	var long, proven int64
	if !handedOff {
		long = r.weight
	}
	if end := currentThread(); r.thread.proves(&end, d) {
		proven = r.weight
	}
	m.noteLong(now, average, long, proven)
}

// noteLong takes a long run into account; see tail.note.
func (m *method) noteLong(now, average, long, proven int64) {
	if m.mode != runLearned || long == 0 && proven == 0 {
		return
	}
	if stay := m.tail.note(now, m.calls.Load(), average, long, proven, processUsage()); stay > 0 {
		m.cost.keepOff(now + stay)
	}
}

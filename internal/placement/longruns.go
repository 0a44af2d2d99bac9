package placement

import (
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysusage"
)

// longRuns finds out whether the runs of a method are short but for a few. Such a method has a
// small average, and still holds up the calls behind each long run on the reader goroutine. See
// docs/decisions/0042.
//
// A run that the operating system interrupted looks like a long one. So the first long runs only
// make a method a suspect. The timed runs of a suspect also read what their thread has used, which
// distinguishes the two.
type longRuns struct {
	suspect mono.Atomic // the time until which timed runs read what their thread has used

	mu     sync.Mutex       // guards the fields below; only long runs lock it
	since  mono.Time        // from which the fields below count
	calls  int64            // of the method, at since
	used   sysusage.Process // at since
	long   runs             // by the clock
	proven runs             // by what their thread has used
	until  mono.Time        // until which the method runs on workers because of its long runs
	stay   time.Duration    // of the last stay on workers
}

// runs counts runs.
type runs struct {
	seen   int64
	weight int64     // of those seen: one timed run counts for the others that were not timed
	spells int64     // in which they were seen
	began  mono.Time // the latest spell
}

// spell is the time in which long runs most likely have one cause. The first calls of many
// connections, for example, wait for each other while they make what is made once.
const spell = 250 * time.Millisecond

// add counts one run that was seen.
func (r *runs) add(now mono.Time, weight int64) {
	r.seen++
	r.weight += weight
	if r.spells == 0 || now.Sub(r.began) >= spell {
		r.spells++
		r.began = now
	}
}

// halve makes old runs count less than new ones.
func (r *runs) halve() { r.seen, r.weight, r.spells = r.seen/2, r.weight/2, r.spells/2 }

// often reports whether there are more than the rate allows in that number of calls.
func (r *runs) often(allowed rate, calls int64) bool {
	return r.spells >= allowed.least && r.weight*allowed.share >= calls
}

// rate is how many long runs a method may have on the reader goroutine: in fewer than least spells,
// or fewer than one in share calls.
type rate struct{ least, share int64 }

var (
	usualRate  = rate{3, 2000}
	returnRate = rate{2, 8000} // soon after a stay on workers, so that a method near usualRate does not go to and fro
)

// longRun is the duration from which a run is long.
const longRun = time.Millisecond

const (
	countSpan  = 10 * time.Second // approximate time over which long runs count
	doubt      = 2                // without proofs, more long runs than this times the preemptions that hit the method
	firstStay  = 10 * time.Second // on workers
	maxStay    = 2 * time.Minute
	excused    = 10 * time.Millisecond // before the end of a run; if the garbage collector ended earlier, it did not cause the run
	forcedStop = 10 * time.Millisecond // run time after which the Go runtime takes a goroutine off its thread
)

// Run is one timed run of a method. The zero value is a run that is not timed.
type Run struct {
	Weight int64 // number of runs for which this one counts
	began  mono.Time
	thread sysusage.Thread
}

// begin starts a timed run.
func (l *longRuns) begin(now mono.Time, weight int64) Run {
	r := Run{Weight: weight, began: now}
	if now < l.suspect.Load() {
		r.thread = sysusage.CurrentThread()
	}
	return r
}

// proven reports whether the run, which has taken that long, was long because of what the handler
// did. It must be called on the goroutine of the run.
func (r *Run) proven(took time.Duration) bool {
	if r.thread.ID == 0 || took < longRun {
		return false
	}
	end := sysusage.CurrentThread()
	return proves(&r.thread, &end, took)
}

// proves reports whether a run between the reads began and end was long because of what the handler
// did: it used the processor, or it waited. A run that the operating system interrupted proves
// nothing.
func proves(began, end *sysusage.Thread, took time.Duration) bool {
	switch {
	case began.ID == 0 || took < longRun:
		return false
	case began.ID != end.ID:
		// A goroutine changes its thread when it waits. It also does when its thread was
		// interrupted for so long that the Go runtime takes the goroutine away afterwards.
		return took < forcedStop
	case end.CPU-began.CPU >= int64(longRun):
		return true
	}
	// A thread that neither waited nor was preempted may have lost its time to another virtual
	// machine.
	return end.Preempted == began.Preempted && end.Waited != began.Waited
}

// note takes a long run into account, and returns for how long the method must run on workers.
// calls is how often the method ran so far, average its mean run before this one. long and proven
// are the number of calls for which this run counts, or 0: proven without a proof, long where the
// run was noted before. used is what the process has used so far.
//
// What is counted decays when a run is noted, so that methods without long runs cost nothing.
func (l *longRuns) note(now mono.Time, calls int64, average time.Duration, long, proven int64, used sysusage.Process) (stay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now < l.until {
		return 0 // the run began before the method was moved
	}
	allowed, back := usualRate, now < l.until.Add(4*l.stay)
	if back {
		allowed = returnRate
	}
	l.decayLocked(now, calls, used)
	if long > 0 {
		l.long.add(now, long)
	}
	if proven > 0 {
		l.proven.add(now, proven)
	}
	made := calls - l.calls
	if !l.long.often(allowed, made) {
		return 0
	}
	l.suspect.Store(now.Add(countSpan))
	if !l.proven.often(allowed, made) && !l.unexplainedLocked(allowed, made, average, used) {
		return 0
	}
	if back {
		l.stay = min(2*l.stay, maxStay)
	} else {
		l.stay = firstStay
	}
	l.until = now.Add(l.stay)
	l.suspect.Store(l.until.Add(4 * l.stay))
	l.since = 0
	return l.stay
}

// decayLocked has old runs count less than new ones.
func (l *longRuns) decayLocked(now mono.Time, calls int64, used sysusage.Process) {
	if l.since == 0 || now.Sub(l.since) > 4*countSpan {
		// Long ago, or never: this run begins a span.
		l.since, l.calls, l.used = now, calls, used
		l.long, l.proven = runs{}, runs{}
	}
	for now.Sub(l.since) > countSpan {
		l.since = l.since.Add(now.Sub(l.since) / 2)
		l.calls += (calls - l.calls) / 2
		l.used.Preempted += (used.Preempted - l.used.Preempted) / 2
		l.used.CPU += (used.CPU - l.used.CPU) / 2
		l.long.halve()
		l.proven.halve()
	}
}

// unexplainedLocked reports whether there are more long runs than preemptions explain. These hit
// methods in proportion to the processor time that they take, which is known from their average.
// Most preemptions are far shorter than a long run, so this decides on quiet machines only, and
// where threads are not known.
func (l *longRuns) unexplainedLocked(allowed rate, made int64, average time.Duration, used sysusage.Process) bool {
	seen := l.long
	if seen.weight = seen.seen; !seen.often(allowed, made) {
		return false
	}
	share := 1.0 // of the method in the time of the process
	if cpu := used.CPU - l.used.CPU; cpu > 0 {
		share = min(1, float64(made*int64(average))/float64(cpu))
	}
	return float64(l.long.seen) > doubt*share*float64(used.Preempted-l.used.Preempted)
}

package anser

import (
	"sync"
	"time"
)

// tail finds methods whose runs are short but for a few. Such a method has a small average, and still holds up the
// calls behind each long run on the goroutine that reads. See docs/decisions/0042.
type tail struct {
	mu    sync.Mutex // guards what follows; it is locked for long runs only
	since int64      // nanotime from which long counts
	long  int64
	calls int64 // of the method, at since
	used  usage // of the process, at since
}

// usage is what the process has used of the machine.
type usage struct {
	preempted int64 // times that it lost a processor against its will
	cpu       int64 // nanoseconds
}

const (
	longRun    = time.Millisecond // from which a run is long
	tailSpan   = 10 * time.Second // over which long runs count, about
	tailLeast  = 3                // long runs at least, and
	tailShare  = 2000             // more than one in this number of calls
	tailDoubt  = 2                // and more than this times those that preemptions explain
	tailRemain = 10 * time.Second // for so long after a long run the method stays on workers
)

// note takes a long run into account, and reports whether the method has to run on workers for tailRemain; calls is how
// often it ran so far, average how many nanoseconds it takes. The fields decay when a run is noted, so that methods without long runs pay nothing.
//
// A run that the operating system interrupted looks like a long one. Such runs hit methods in proportion to the
// processor time that they take, of which method.cost knows the average: what that explains does not count.
func (t *tail) note(now, calls, average int64, used usage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.long == 0 || now-t.since > 4*int64(tailSpan) {
		// Long ago, or never: this run begins a span. Those before it in the same second are not known.
		t.since, t.long, t.calls, t.used = now, 1, calls, used
		return false
	}
	for now-t.since > int64(tailSpan) {
		t.since += (now - t.since) / 2
		t.calls += (calls - t.calls) / 2
		t.used.preempted += (used.preempted - t.used.preempted) / 2
		t.used.cpu += (used.cpu - t.used.cpu) / 2
		t.long /= 2
	}
	t.long++
	made := calls - t.calls
	if t.long < tailLeast || t.long*tailShare < made {
		return false
	}
	share := 1.0 // of the method in the time of the process
	if cpu := used.cpu - t.used.cpu; cpu > 0 {
		share = min(1, float64(made*average)/float64(cpu))
	}
	return float64(t.long) > tailDoubt*share*float64(used.preempted-t.used.preempted)
}

// noteRun takes the duration of one run into account.
func (m *method) noteRun(now, d int64) {
	m.cost.note(d)
	if d >= int64(longRun) {
		m.noteLong(now)
	}
}

// noteLong takes a long run into account.
func (m *method) noteLong(now int64) {
	if m.mode == runLearned && m.tail.note(now, m.calls.Load(), m.cost.average.Load(), processUsage()) {
		m.cost.keepOff(now + int64(tailRemain))
	}
}

package collect

import (
	"testing"
	"time"
)

// Until the console has measured what it uses, a reading costs 0.7 ms on both sides.
func TestPlansForTheShare(t *testing.T) {
	for _, c := range []struct {
		n, detailed int
		processors  float64
		watched     bool
		want        plan
	}{
		{10, 0, 1, true, plan{Watched, 1, 1}},        // 7 ms of 10 ms
		{10, 0, 0.71, true, plan{Watched, 1, 1}},     //
		{10, 0, 0.69, true, plan{Watched, 2, 1}},     // 3.5 ms of 6.9 ms
		{10, 0, 0.34, true, plan{Watched, 3, 1}},     // 2.3 ms of 3.4 ms
		{10, 0, 0.2, true, plan{Watched, 4, 1}},      // 1.75 ms of 2 ms
		{10, 0, 0.01, true, plan{Slowest / 2, 2, 2}}, // the figures are not older than that
		{10, 4, 0.5, true, plan{Watched, 2, 1}},      // 4.9 ms of 5 ms
		{10, 4, 0.4, true, plan{Watched, 4, 1}},      // 3.85 ms of 4 ms
		{10, 4, 0.3, true, plan{Watched, 4, 2}},      // 2.45 ms of 3 ms
		{10, 4, 0.2, true, plan{2 * Watched, 2, 2}},  // 1.75 ms of 2 ms
		{10, 4, 0.17, true, plan{Slowest / 2, 2, 2}}, //
		{1000, 0, 50, true, plan{Watched, 5, 1}},     // a large system takes more turns
		{1000, 0, 0.01, true, plan{Slowest / 2, 2, 2}},
		{10, 0, 0.071, false, plan{Unwatched, 1, 1}}, // 0.7 ms of 0.71 ms
		{10, 0, 0.069, false, plan{Unwatched, 2, 2}}, // 0.35 ms of 0.69 ms
		{10, 0, 0.034, false, plan{Unwatched, 3, 3}}, //
		{10, 0, 0.0001, false, plan{Unwatched, 3, 3}},
		{1000, 0, 50, false, plan{Unwatched, 1, 1}},
		{10, 0, 0, true, plan{Watched, 1, 1}}, // not known
		{0, 0, 1, true, plan{Watched, 1, 1}},  //
	} {
		var b budget
		now := time.Now()
		b.look(now, 0, c.watched)
		if got := b.plan(now, c.n, c.detailed, c.processors/aim); got != c.want {
			t.Errorf("%+v: the plan is %+v", c, got)
		}
	}
}

// What the console uses is measured apart for the times with and without a viewer. Half of it does
// not depend on the number of readings.
func TestMeasuredSpending(t *testing.T) {
	var used time.Duration
	b := budget{used: func() time.Duration { return used }}
	now := time.Now()
	turns := func(processors float64) int {
		b.use = processors / aim // on average
		return b.plan(now, 8, 0, b.use).others
	}
	b.look(now, 0, true)
	for i := range 10 {
		now, used = now.Add(time.Second), used+2*time.Millisecond
		b.look(now, int64(4*i+4), true)
	} // 2 ms a second for 4 readings, so 3 ms for 8, and the pages 2.8 ms
	if turns(0.581) != 1 {
		t.Error("5.8 ms are over the share of 581 ms")
	}
	now = now.Add(measureFor)
	if turns(0.579) != 2 {
		t.Error("5.8 ms are within the share of 579 ms")
	}
	b.look(now, 80, false)
	now, used = now.Add(25*time.Second), used+10*time.Millisecond
	b.look(now, 100, false) // 0.4 ms a second for 0.8 readings, and 0.28 ms of the pages
	if turns(0.069) != 1 || b.known.watched.processors != 0.002 {
		t.Errorf("it uses %+v", b.known)
	}
	now = now.Add(measureFor)
	if turns(0.067) != 2 {
		t.Error("0.68 ms are within the share of 67 ms")
	}
	before := b.known
	b.look(now.Add(time.Minute), 200, false)
	if b.known != before {
		t.Errorf("a time in which the console was stopped counts: %+v", b.known)
	}
}

// Processes are read more often at once, and less often after a while, unless a viewer comes or
// leaves.
func TestPlansLast(t *testing.T) {
	var b budget
	now := time.Now()
	for _, c := range []struct {
		after      time.Duration
		processors float64
		watched    bool
		want       int
	}{
		{0, 0, true, 1}, // not known yet
		{0, 0.4, true, 2},
		{time.Second, 0.81, true, 1},       // more than twice as much counts at once
		{2 * time.Second, 0.4, true, 1},    // a second of ten: 0.77 on average
		{10 * time.Second, 0.4, true, 1},   // 0.47
		{11 * time.Second, 0.4, true, 2},   //
		{12 * time.Second, 0.8, true, 2},   // 0.5: no more than twice as much, so
		{22 * time.Second, 0.8, true, 1},   // after ten seconds
		{23 * time.Second, 0.01, false, 1}, // 0.72
		{24 * time.Second, 0.01, true, 2},  // 0.65
	} {
		at := now.Add(c.after)
		b.look(at, 0, c.watched)
		if got := b.plan(at, 10, 0, c.processors/aim).others; got != c.want {
			t.Errorf("after %v: %d turns, want %d, at %v processors", c.after, got, c.want, b.use)
		}
	}
}

// Two pages of a process count once, and what is not known does not count.
func TestProcessors(t *testing.T) {
	known := func(id string, cpu float64) *process {
		return &process{view: Process{ID: id, CPU: cpu, Window: time.Second}}
	}
	failed := known("c", 4)
	failed.view.Error = "no answer"
	if got := processors([]*process{known("a", 0.5), known("a", 0.5), known("b", 0.25), failed, {}}); got != 0.75 {
		t.Errorf("they use %v processors", got)
	}
}

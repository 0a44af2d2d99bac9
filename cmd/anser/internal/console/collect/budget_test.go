package collect

import (
	"testing"
	"time"
)

// Until the console has measured what it uses, a reading costs 0.7 ms on both sides.
func TestTurnsForTheShare(t *testing.T) {
	for _, c := range []struct {
		n          int
		processors float64
		watched    bool
		want       int
	}{
		{10, 1, true, 1},       // 7 ms of 10 ms
		{10, 0.71, true, 1},    //
		{10, 0.69, true, 2},    // 3.5 ms of 6.9 ms
		{10, 0.01, true, 2},    // the figures are not older than that
		{10, 0.071, false, 1},  // 0.7 ms of 0.71 ms
		{10, 0.069, false, 2},  // 0.35 ms of 0.69 ms
		{10, 0.034, false, 3},  //
		{10, 0.0001, false, 3}, //
		{10, 0, true, 1},       // not known
		{0, 1, true, 1},        //
	} {
		var b budget
		now := time.Now()
		b.look(now, 0, c.watched)
		if got := b.turns(now, c.n, func() float64 { return c.processors }); got != c.want {
			t.Errorf("%+v: %d turns", c, got)
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
		return b.turns(now, 8, func() float64 { return processors })
	}
	b.look(now, 0, true)
	now, used = now.Add(10*time.Second), used+20*time.Millisecond
	b.look(now, 40, true) // 2 ms a second for 4 readings, so 3 ms for 8, and the pages 2.8 ms
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
}

// A decision lasts for a while, unless a viewer comes or leaves.
func TestDecisionsLast(t *testing.T) {
	var b budget
	now := time.Now()
	for _, c := range []struct {
		after      time.Duration
		processors float64
		watched    bool
		want       int
	}{
		{0, 0, true, 1}, // not known yet
		{0, 0.1, true, 2},
		{time.Second, 10, true, 2},
		{11 * time.Second, 10, true, 1},
		{12 * time.Second, 0.001, false, 3},
		{13 * time.Second, 0.001, true, 2},
	} {
		at := now.Add(c.after)
		b.look(at, 0, c.watched)
		if got := b.turns(at, 10, func() float64 { return c.processors }); got != c.want {
			t.Errorf("after %v: %d turns, want %d", c.after, got, c.want)
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

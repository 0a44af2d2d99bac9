package main

import (
	"math"
	"slices"
	"testing"
	"time"
)

// All callers are somewhere, and the rate is the sum of the parts.
func TestSplit(t *testing.T) {
	for _, c := range []struct{ callers, processes, want int }{{64, 64, 64}, {64, 1, 1}, {64, 2, 2}, {256, 64, 64}, {4, 64, 4}, {7, 3, 3}, {64, 0, 1}} {
		parts := split(c.callers, c.processes)
		callers, share := 0, 0.0
		for _, p := range parts {
			callers += p.Callers
			share += p.Share
			if p.Callers == 0 || p.Offset < 0 || p.Offset >= 1 {
				t.Errorf("%d callers in %d processes: %+v", c.callers, c.processes, p)
			}
		}
		if len(parts) != c.want || callers != c.callers || math.Abs(share-1) > 1e-9 {
			t.Errorf("%d callers in %d processes: %d parts with %d callers and %g of the rate", c.callers, c.processes, len(parts), callers, share)
		}
	}
}

// The first calls of all processes are spread evenly over the time between two calls of a caller.
func TestFirstCallsAreSpread(t *testing.T) {
	for _, n := range []int{1, 2, 16, 64} {
		var due []time.Duration
		for _, p := range split(64, n) {
			l := newLoad(nil, loadOptions{Callers: p.Callers, Rate: 1000 * p.Share, Offset: p.Offset})
			for i := range p.Callers {
				due = append(due, l.first(i))
			}
		}
		slices.Sort(due)
		for i, d := range due {
			if want := time.Duration(i) * time.Millisecond; (d - want).Abs() > time.Microsecond {
				t.Fatalf("%d processes: call %d is due at %v, want %v", n, i, d, want)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	got := merge([]loaded{
		{Calls: 3, Paused: time.Second, Samples: []sample{{"late", seconds(2), 2, "the second"}, {"lost", seconds(3), 1, "lost"}}},
		{},
		{Calls: 4, Paused: 2 * time.Second, Samples: []sample{{"late", seconds(1), 5, "the first"}}},
		{Calls: 1, Samples: []sample{{"late", seconds(4), 1, "the third"}}},
	})
	want := []sample{{"late", seconds(1), 8, "the first"}, {"lost", seconds(3), 1, "lost"}}
	if got.Calls != 8 || got.Paused != 2*time.Second || !slices.Equal(got.Samples, want) {
		t.Errorf("%+v, want 8 calls, 2 s and %+v", got, want)
	}
}

// How far the load came before the fault, and how late its calls began.
func TestReached(t *testing.T) {
	o := observed(3, 5)
	if got := o.reached(); got < 99 || got > 101 {
		t.Errorf("%g calls/s, want 100", got)
	}
	if got := o.lag(1); got != 0 {
		t.Errorf("calls began late by %v, want at once", got)
	}
	for i := range o.calls {
		if i%2 == 0 {
			o.calls[i].Began, o.calls[i].Ended = o.calls[i].Due+int64(10*time.Second), o.calls[i].Due+int64(11*time.Second)
		}
	}
	if got := o.reached(); got < 49 || got > 51 {
		t.Errorf("every other call came late: %g calls/s in time, want 50", got)
	}
	if got := o.lag(0.99); got != 10*time.Second {
		t.Errorf("calls began late by %v, want 10 s", got)
	}
}

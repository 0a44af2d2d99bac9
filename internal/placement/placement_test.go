package placement_test

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/placement"
)

// The first run, which makes what is made once, does not move a method off the goroutines that
// read; nor does one that the operating system interrupted now and then. Runs that are slow do.
func TestSlowRuns(t *testing.T) {
	for _, test := range []struct {
		name   string
		runs   int
		slow   int // one in that many
		inline bool
	}{{"the first one", 1, 1, true}, {"some", 1000, 10, true}, {"all", 32, 1, false}} {
		var l placement.Learner
		for n := range test.runs {
			d := time.Microsecond
			if n%test.slow == 0 {
				d = time.Second
			}
			l.Note(d)
		}
		if got := l.Inline(mono.Now()); got != test.inline {
			t.Errorf("%s slow: inline %v", test.name, got)
		}
	}
}

// A timed run counts in the average, unless its connection was handed off: then it is counted once,
// by Handoff.
func TestTimedRuns(t *testing.T) {
	for _, handedOff := range []bool{false, true} {
		var l placement.Learner
		now := mono.Now()
		for n := range int64(100) {
			r := l.Begin(now, 1)
			if r.Weight != 1 {
				t.Fatalf("a run with the weight %d", r.Weight)
			}
			now = now.Add(500 * time.Microsecond)
			l.End(&r, now, func() int64 { return n }, handedOff)
		}
		if got := l.Inline(now); got != handedOff {
			t.Errorf("handed off %v: inline %v after slow runs", handedOff, got)
		}
	}
}

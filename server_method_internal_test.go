package anser

import (
	"testing"
	"time"
)

// On a machine without a free processor a handler that blocks in every call is told from fast ones that
// just did not run.
func TestHandoffsOfAStarvedProcess(t *testing.T) {
	blocks := func(kept bool, each int64) bool {
		var c cost
		now := int64(time.Hour)
		for n := range int64(5) {
			c.noteHandoff(now+n, 1+n*each, kept)
		}
		return c.until.Load() > now
	}
	for _, test := range []struct {
		kept bool
		each int64 // calls between two handoffs
		want bool
	}{{false, 1, true}, {false, 1000, false}, {true, 1, true}, {true, 1000, true}, {true, 10_000, false}} {
		if got := blocks(test.kept, test.each); got != test.want {
			t.Errorf("a handoff every %d calls, kept its processors %v: leaves the reading goroutine %v", test.each, test.kept, got)
		}
	}
}

// The first run, which makes what is made once, does not move a method off the goroutines that read; nor does one that
// the operating system interrupted now and then. Runs that are slow do.
func TestCostOfSlowRuns(t *testing.T) {
	for _, test := range []struct {
		name   string
		runs   int
		slow   int // one in so many
		inline bool
	}{{"the first one", 1, 1, true}, {"some", 1000, 10, true}, {"all", 32, 1, false}} {
		m := new(method)
		for n := range test.runs {
			d := time.Microsecond
			if n%test.slow == 0 {
				d = time.Second
			}
			m.cost.note(int64(d))
		}
		if got := m.inline(0); got != test.inline {
			t.Errorf("%s slow: inline %v, on average %v", test.name, got, time.Duration(m.cost.average.Load()))
		}
	}
}

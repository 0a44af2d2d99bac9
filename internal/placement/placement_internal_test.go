package placement

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// On a machine without a free processor a handler that blocks in every call is distinguished from
// fast ones that just did not run.
func TestHandoffsOfAStarvedProcess(t *testing.T) {
	blocks := func(kept bool, each int64) bool {
		var l Learner
		now := mono.Now()
		for n := range int64(5) {
			l.countHandoff(now.Add(time.Duration(n)), 1+n*each, kept)
		}
		return !l.Inline(now.Add(5))
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

// A method that blocks again when it comes back stays away twice as long, until it was well for
// long.
func TestPenaltyDoubles(t *testing.T) {
	var l Learner
	now := mono.Now()
	for _, test := range []struct{ well, want time.Duration }{
		{0, 250 * time.Millisecond},
		{0, 500 * time.Millisecond},
		{time.Second, time.Second},
		{10 * time.Second, 250 * time.Millisecond},
		{0, 500 * time.Millisecond},
	} {
		now = now.Add(test.well)
		for range maxHandoffs {
			l.countHandoff(now, 10, true)
		}
		if l.Inline(now.Add(test.want-1)) || !l.Inline(now.Add(test.want)) {
			t.Errorf("well for %v: stays away for %v, want %v", test.well, l.until.Load().Sub(now), test.want)
		}
		now = now.Add(test.want)
	}
}

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

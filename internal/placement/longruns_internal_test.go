package placement

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysusage"
)

// The long runs that the handler has caused keep a method off the reader goroutine, even
// if they are rare.
func TestRareLongRuns(t *testing.T) {
	const second = int64(time.Second)
	for name, test := range map[string]struct {
		rate      int64 // calls a second
		one       int64 // in that many calls is long
		average   time.Duration
		preempted int64 // a second
		weight    int64 // of a run
		proven    int64 // of ten long runs
		want      bool
	}{
		"one in a thousand":             {1_000, 1_000, 2 * time.Microsecond, 5, 1, 0, true},
		"one in a thousand, many calls": {20_000, 1_000, 2 * time.Microsecond, 50, 1, 0, true},
		"one in a hundred":              {100, 100, 10 * time.Microsecond, 0, 1, 0, true},
		"one in ten thousand":           {20_000, 10_000, 2 * time.Microsecond, 5, 1, 10, false},
		"one a minute":                  {1, 60, 2 * time.Microsecond, 0, 1, 10, false},
		// 160,000 calls/s of 3 µs on two busy processors, where others take them away 500 times a
		// second.
		"interrupted": {160_000, 1_500, 3 * time.Microsecond, 500, 1, 0, false},
		// Measured: two processes share two processors, and most preemptions are short.
		"burning among preemptions":          {10_000, 1_000, 2 * time.Microsecond, 2_300, 1, 8, true},
		"burning, and one in eight is timed": {80_000, 8_000, 2 * time.Microsecond, 2_300, 8, 8, true},
		"interrupted, one in eight is timed": {80_000, 8_000, 2 * time.Microsecond, 2_300, 8, 0, false},
		"burning in one of ten long runs":    {10_000, 1_000, 2 * time.Microsecond, 2_300, 1, 1, false},
	} {
		var l longRuns
		now, moved, long := mono.Time(second), false, int64(0)
		for calls := int64(1); now < mono.Time(60*second); calls++ {
			now = now.Add(time.Second / time.Duration(test.rate))
			if calls%test.one != 0 {
				continue
			}
			busy := calls * 25 * int64(time.Microsecond)
			if test.rate > 70_000 {
				busy = 2 * now.Nanoseconds()
			}
			var proven int64
			if long++; long*test.proven/10 != (long-1)*test.proven/10 {
				proven = test.weight
			}
			moved = l.note(now, calls, test.average, test.weight, proven, sysusage.Process{CPU: busy, Preempted: test.preempted * now.Nanoseconds() / second}) > 0 || moved
		}
		if moved != test.want {
			t.Errorf("%s: moved %v, want %v", name, moved, test.want)
		}
	}
}

// Many long runs within a moment have one cause, and do not move a method, however few calls it had
// before. As many that go on do.
func TestLongRunsOfAMoment(t *testing.T) {
	for name, test := range map[string]struct {
		apart time.Duration
		want  bool
	}{"at once": {4 * time.Millisecond, false}, "again and again": {spell, true}} {
		var l longRuns
		now, moved := mono.Time(time.Hour), false
		for calls := range int64(50) {
			now = now.Add(test.apart)
			moved = l.note(now, calls, 10*time.Microsecond, 1, 1, sysusage.Process{}) > 0 || moved
		}
		if moved != test.want {
			t.Errorf("%s: moved %v", name, moved)
		}
	}
}

// A method that still has long runs when it comes back is moved after fewer long runs, for twice as
// long.
func TestLongRunsAfterReturn(t *testing.T) {
	var l longRuns
	now, calls := mono.Time(time.Hour), int64(0)
	moves := func(every int64) (after int, stay time.Duration) {
		for after = 1; after < 100; after++ {
			now = now.Add(time.Second)
			calls += every
			if stay := l.note(now, calls, 1000, 1, 1, sysusage.Process{}); stay > 0 {
				return after, stay
			}
		}
		return 0, 0
	}
	for _, want := range []struct {
		every int64
		after int
		stay  time.Duration
	}{{1000, 3, 10 * time.Second}, {1000, 2, 20 * time.Second}, {5000, 2, 40 * time.Second}, {20_000, 0, 0}} {
		if after, stay := moves(want.every); after != want.after || stay != want.stay {
			t.Errorf("one in %d: moved after %d long runs for %v, want %d and %v", want.every, after, stay, want.after, want.stay)
		}
		if n := l.note(now.Add(want.stay-1), calls, 1000, 1, 1, sysusage.Process{}); want.stay > 0 && n > 0 {
			t.Errorf("moved while it runs on workers")
		}
		now = now.Add(want.stay)
	}
	now = now.Add(time.Hour)
	if after, stay := moves(1000); after != 3 || stay != firstStay {
		t.Errorf("an hour later: moved after %d long runs for %v", after, stay)
	}
}

// What proves that a long run is the handler's.
func TestProofs(t *testing.T) {
	const ms = int64(time.Millisecond)
	began := sysusage.Thread{ID: 7, CPU: 100 * ms, Preempted: 10, Waited: 20}
	for name, test := range map[string]struct {
		began, end sysusage.Thread
		d          int64
		want       bool
	}{
		"burns":                          {began, sysusage.Thread{ID: 7, CPU: 105 * ms, Preempted: 10, Waited: 20}, 5 * ms, true},
		"burns, often preempted":         {began, sysusage.Thread{ID: 7, CPU: 105 * ms, Preempted: 90, Waited: 20}, 90 * ms, true},
		"short, preempted":               {began, sysusage.Thread{ID: 7, CPU: 100*ms + 10_000, Preempted: 11, Waited: 20}, 8 * ms, false},
		"short, its machine did not run": {began, sysusage.Thread{ID: 7, CPU: 100*ms + 10_000, Preempted: 10, Waited: 20}, 8 * ms, false},
		"waits in a system call":         {began, sysusage.Thread{ID: 7, CPU: 100*ms + 10_000, Preempted: 10, Waited: 21}, 8 * ms, true},
		"waits for another goroutine":    {began, sysusage.Thread{ID: 9, CPU: 3 * ms, Preempted: 10, Waited: 21}, 8 * ms, true},
		"was taken off its thread":       {began, sysusage.Thread{ID: 9, CPU: 3 * ms, Preempted: 10, Waited: 21}, 12 * ms, false},
		"is short":                       {began, sysusage.Thread{ID: 9, CPU: 3 * ms, Preempted: 10, Waited: 21}, ms / 2, false},
		"not known when it began":        {sysusage.Thread{}, sysusage.Thread{ID: 7, CPU: 105 * ms, Preempted: 10, Waited: 20}, 5 * ms, false},
		"not known at all":               {sysusage.Thread{}, sysusage.Thread{}, 5 * ms, false},
	} {
		if got := proves(&test.began, &test.end, time.Duration(test.d)); got != test.want {
			t.Errorf("%s: proven %v, want %v", name, got, test.want)
		}
	}
}

package anser

import (
	"testing"
	"time"
)

// Which long runs keep a method off the reading goroutines: those that preemptions do not explain, even if they are
// rare.
func TestTail(t *testing.T) {
	const second = int64(time.Second)
	for name, test := range map[string]struct {
		rate      int64 // calls a second
		one       int64 // in so many calls is long
		average   time.Duration
		preempted int64 // a second
		want      bool
	}{
		"one in a thousand":             {1_000, 1_000, 2 * time.Microsecond, 5, true},
		"one in a thousand, many calls": {20_000, 1_000, 2 * time.Microsecond, 50, true},
		"one in a hundred":              {100, 100, 10 * time.Microsecond, 0, true},
		"one in ten thousand":           {20_000, 10_000, 2 * time.Microsecond, 5, false},
		"one a minute":                  {1, 60, 2 * time.Microsecond, 0, false},
		// 160,000 calls/s of 3 µs on two busy processors, where others take them away 500 times a second.
		"interrupted": {160_000, 1_500, 3 * time.Microsecond, 500, false},
	} {
		var c tail
		now, moved := second, false
		for calls := int64(1); now < 60*second; calls++ {
			now += second / test.rate
			if calls%test.one != 0 {
				continue
			}
			busy := calls * 25 * int64(time.Microsecond)
			if test.rate > 100_000 {
				busy = 2 * now
			}
			moved = c.note(now, calls, int64(test.average), usage{preempted: test.preempted * now / second, cpu: busy}) || moved
		}
		if moved != test.want {
			t.Errorf("%s: moved %v, want %v", name, moved, test.want)
		}
	}
}

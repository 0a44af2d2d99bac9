package contention

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Transfer measures how long it takes until a processor sees what another one has written, and has
// written the same cache line itself: the shortest mean of some trials, since the machine does
// other things too. It is 0 if GOMAXPROCS is 1.
func Transfer() time.Duration {
	if runtime.GOMAXPROCS(0) < 2 {
		return 0
	}
	best := time.Hour
	began := time.Now()
	for n := 0; n < trials && time.Since(began) < enough; n++ {
		best = min(best, passLine(passes))
	}
	return best
}

const (
	trials  = 500
	enough  = 200 * time.Millisecond // for all trials
	passes  = 200                    // of the line, in a trial: both processors may be taken away
	patient = 1 << 14                // looks at the line before the processor is left to others
)

// passLine passes a line to and fro between two goroutines, and returns the mean time of a pass.
func passLine(n int64) time.Duration {
	line := new(struct {
		_    [128]byte
		turn atomic.Int64
		_    [128]byte
	})
	take := func(from int64) {
		for turn := from; turn < n; turn += 2 {
			for looks := 0; line.turn.Load() != turn; looks++ {
				if looks == patient {
					runtime.Gosched()
					looks = 0
				}
			}
			line.turn.Store(turn + 1)
		}
	}
	var wg sync.WaitGroup
	ready := make(chan struct{})
	wg.Go(func() {
		close(ready)
		take(1)
	})
	<-ready
	began := time.Now()
	take(0)
	wg.Wait()
	return time.Since(began) / time.Duration(n)
}

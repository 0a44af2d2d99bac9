package placement

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// collector knows when the garbage collector has marked. While it does, a goroutine that allocates
// may be made to mark, too, or to wait, whatever its handler does: a long run proves nothing then.
// See docs/decisions/0085.
type collector struct {
	mu      sync.Mutex // guards the fields below
	samples []metrics.Sample
	last    debug.GCStats
	extra   int64 // pauses beyond the two of each cycle
	doubts  int   // cycles in a row at whose end there seemed to be more of them
	waiting bool  // for the end of a cycle
}

// process is the collector of this process.
var process = newCollector()

func newCollector() *collector {
	return &collector{samples: []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/gc/cycles/total:gc-cycles"}}}
}

// marked reports whether the collector has marked at some time of the last d. It takes about two
// microseconds.
func (c *collector) marked(d time.Duration) bool {
	marked, await := c.look(d)
	if await {
		c.awaitEnd()
	}
	return marked
}

// look is marked. await says that the caller must call awaitEnd, which allocates: while the
// collector marks, that may take long, and others would wait for the lock.
func (c *collector) look(d time.Duration) (marked, await bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.marksLocked()
	if open != 0 && !c.waiting {
		c.waiting, await = true, true
	}
	if open > 0 {
		return true, await
	}
	debug.ReadGCStats(&c.last)
	ago := time.Since(c.last.LastGC) // by the wall clock; negative in a bubble of synctest
	return ago >= 0 && ago <= d, await
}

// marksLocked returns 1 if the collector marks now. There is a pause when it begins to, and one
// when it has ended, which is counted just after the cycle. A negative number is one that is not
// known yet, or says that extra is too large.
func (c *collector) marksLocked() int64 {
	open := c.openLocked() - c.extra
	if open > 1 { // now and then the collector finds in the second pause that it must go on
		c.extra += open - 1
		open = 1
	}
	return open
}

// openLocked returns the number of pauses so far less those of the cycles that have ended.
func (c *collector) openLocked() (open int64) {
	metrics.Read(c.samples)
	for _, n := range c.samples[0].Value.Float64Histogram().Counts {
		open += int64(n)
	}
	return open - 2*int64(c.samples[1].Value.Uint64())
}

// manyDoubts is how many cycles in a row the collector must seem to mark at their end: after one,
// the next cycle may have begun already.
const manyDoubts = 4

// awaitEnd makes afterEnd run at the end of a cycle.
func (c *collector) awaitEnd() { runtime.AddCleanup(new(cycle), (*collector).afterEnd, c) }

// cycle is unreachable at once. It is larger than the objects that the runtime allocates together.
type cycle [64]byte

// afterEnd corrects extra after the end of a cycle, when the collector most likely does not mark.
// Without it, one more pause of a cycle during which nothing called marked would look like marking
// until a call of marked happens to find the collector at it.
func (c *collector) afterEnd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = false
	open := c.openLocked() - c.extra
	if open <= 0 {
		c.extra += open
		c.doubts = 0
	} else if c.doubts++; c.doubts >= manyDoubts {
		c.extra++
		c.doubts = 0
	}
}

package placement

import (
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
}

// process is the collector of this process.
var process = collector{samples: []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/gc/cycles/total:gc-cycles"}}}

// marked reports whether the collector has marked at some time of the last d. It takes about two
// microseconds.
func (c *collector) marked(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.marksLocked() {
		return true
	}
	debug.ReadGCStats(&c.last)
	ago := time.Since(c.last.LastGC) // by the wall clock; negative in a bubble of synctest
	return ago >= 0 && ago <= d
}

// marksLocked reports whether the collector marks now. There is a pause when it begins to, and one
// when it has ended, which is counted just after the cycle.
func (c *collector) marksLocked() bool {
	open := c.openLocked() - c.extra
	if open > 1 { // now and then the collector finds in the second pause that it must go on
		c.extra += open - 1
	}
	return open > 0
}

// openLocked returns the number of pauses so far less those of the cycles that have ended.
func (c *collector) openLocked() (open int64) {
	metrics.Read(c.samples)
	for _, n := range c.samples[0].Value.Float64Histogram().Counts {
		open += int64(n)
	}
	return open - 2*int64(c.samples[1].Value.Uint64())
}

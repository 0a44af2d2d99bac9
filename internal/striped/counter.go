// Package striped has numbers that all processors of a large machine write at the same time. A
// cache line belongs to one processor at a time, and fetching it from another one takes 50 to 100
// ns, during which no other processor gets it. So a number has as many cache lines as there are
// processors, and its value is their sum.
package striped

import (
	"runtime"
	"sync/atomic"
)

// Counter is a number that is added to much more often than it is read. The zero value is 0 and
// ready for use. All methods are safe for concurrent use. A Counter must not be copied.
//
// It is one word until processors are seen to write it at the same time, again and again. So
// thousands of counters that are hardly used take 32 bytes each, and on one processor all of them
// do.
type Counter struct {
	base    atomic.Int64
	stripes atomic.Pointer[[]stripe] // nil: base is enough

	// Written only when two processors have clashed.
	clashes atomic.Int32
	mark    atomic.Int64 // value of base when counting clashes began
}

// stripe has two cache lines, since processors fetch them in pairs.
type stripe struct {
	n atomic.Int64
	_ [120]byte
}

const (
	maxStripes = 64
	clashSpan  = 1 << 16 // additions in which clashes are counted
	maxClashes = 64      // in them, after which a counter has stripes
)

// Stripes returns how many parts a number should have for the processors that there are, a power
// of 2.
func Stripes() int {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < maxStripes {
		n *= 2
	}
	return n
}

// Add adds n. place chooses among the stripes: callers on different processors should mostly have
// different ones.
func (c *Counter) Add(place uint32, n int64) {
	if stripes := c.stripes.Load(); stripes != nil {
		(*stripes)[int(place)&(len(*stripes)-1)].n.Add(n)
		return
	}
	if old := c.base.Load(); !c.base.CompareAndSwap(old, old+n) {
		c.addClashing(n)
	}
}

// Load returns the value. It includes every addition that has ended, and perhaps some that have
// not.
func (c *Counter) Load() int64 {
	sum := c.base.Load()
	if stripes := c.stripes.Load(); stripes != nil {
		for i := range *stripes {
			sum += (*stripes)[i].n.Load()
		}
	}
	return sum
}

// addClashing adds n after another processor has written base at the same time.
func (c *Counter) addClashing(n int64) {
	value := c.base.Add(n)
	if from := c.mark.Load(); value-from > clashSpan || value < from {
		c.mark.Store(value)
		c.clashes.Store(1)
		return
	}
	if c.clashes.Add(1) < maxClashes {
		return
	}
	if size := Stripes(); size > 1 {
		stripes := make([]stripe, size)
		c.stripes.CompareAndSwap(nil, &stripes)
	}
}

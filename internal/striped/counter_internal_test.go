package striped

import (
	"runtime"
	"testing"
)

// clash adds to the counter as if another processor had just written it.
func clash(c *Counter, times int) {
	for range times {
		c.addClashing(1)
	}
}

func TestStripesAreMadeForClashes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	var c Counter
	clash(&c, maxClashes-1)
	if c.stripes.Load() != nil {
		t.Error("there are stripes after few clashes")
	}
	clash(&c, 1)
	if s := c.stripes.Load(); s == nil || len(*s) != 4 {
		t.Fatal("there are not 4 stripes after many clashes on 3 processors")
	}
	clash(&c, 10) // of goroutines that have not seen the stripes
	c.Add(5, 2)
	if n := c.Load(); n != maxClashes+12 {
		t.Errorf("%d, want %d", n, maxClashes+12)
	}
}

// Clashes that are rare among the additions do not make a counter large, however many there were.
func TestRareClashes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var c Counter
	for range 10 * maxClashes {
		clash(&c, 1)
		c.Add(0, clashSpan/(maxClashes-1))
	}
	if c.stripes.Load() != nil {
		t.Error("there are stripes after rare clashes")
	}
}

func TestOneProcessorHasNoStripes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var c Counter
	clash(&c, 10*maxClashes)
	if c.stripes.Load() != nil || c.Load() != 10*maxClashes {
		t.Errorf("stripes %v, %d", c.stripes.Load(), c.Load())
	}
}

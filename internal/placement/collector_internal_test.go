package placement

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// tree keeps a collector busy for a while.
type tree struct{ left, right *tree }

func grow(depth int) *tree {
	if depth == 0 {
		return nil
	}
	return &tree{grow(depth - 1), grow(depth - 1)}
}

// The collector knows of a cycle while it marks, and of one that has ended.
func TestCollectorMarked(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	c := collector{samples: process.samples, extra: process.openLocked()}
	if c.marked(0) {
		t.Error("it marks although it is off")
	}
	if !c.marked(time.Hour) {
		t.Error("it has not marked within an hour, although it just has")
	}

	heap := grow(18)
	seen, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-seen:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for end := time.Now().Add(time.Minute); ; {
		if c.mu.Lock(); c.marksLocked() {
			c.mu.Unlock()
			break
		}
		c.mu.Unlock()
		if time.Now().After(end) {
			t.Error("it was not seen for a minute")
			break
		}
	}
	close(seen)
	<-ended
	runtime.KeepAlive(heap)
	if c.marked(0) {
		t.Error("it marks after the end of the cycle")
	}
}

// A collector that pauses more than twice in a cycle does not seem to mark for ever.
func TestCollectorPausesAgain(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	known := process.openLocked()
	c := collector{samples: process.samples, extra: known - 1} // there was one more pause
	if !c.marksLocked() {
		t.Error("it does not seem to mark: that is only known once it does")
	}
	c.extra = known - 2 // and now it marks
	if !c.marksLocked() || c.extra != known-1 {
		t.Errorf("%d more pauses are known, want %d", c.extra, known-1)
	}
}

func BenchmarkCollectorMarked(b *testing.B) {
	for b.Loop() {
		process.marked(0)
	}
}

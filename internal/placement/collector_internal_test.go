package placement

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/testusage"
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
	c := newCollector()
	c.extra = c.openLocked()
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
		if c.mu.Lock(); c.marksLocked() > 0 {
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
	c := newCollector()
	known := c.openLocked()
	c.extra = known - 1 // there was one more pause
	if c.marksLocked() <= 0 {
		t.Error("it does not seem to mark: the next cycles will show that")
	}
	c.extra = known - 2 // and now it marks
	if c.marksLocked() <= 0 || c.extra != known-1 {
		t.Errorf("%d more pauses are known, want %d", c.extra, known-1)
	}
}

// The number of pauses beyond two in each cycle is found after some cycles, whatever was taken for
// it.
func TestCollectorCountsPausesAgain(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, wrong := range []int64{-1, 1} {
		c := newCollector()
		c.extra = c.openLocked() + wrong
		for end := time.Now().Add(time.Minute); wrong != 0; {
			if c.marked(0); time.Now().After(end) {
				t.Fatalf("it is wrong by %d after a minute", wrong)
			}
			runtime.GC()
			c.mu.Lock()
			wrong = c.extra - c.openLocked()
			c.mu.Unlock()
		}
		if c.marked(0) {
			t.Error("it marks although it is off")
		}
	}
}

// Long runs and handoffs do not move a method while the collector marks; otherwise they do.
func TestCollectorExcusesRuns(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	setExtra := func(less int64) {
		process.mu.Lock()
		defer process.mu.Unlock()
		process.extra = process.openLocked() - less
	}
	defer setExtra(0)
	setExtra(0)
	if !testusage.Soon(func() bool { return !process.marked(excused) }) {
		t.Fatal("the end of a cycle excuses runs for seconds")
	}
	for _, test := range []struct {
		name  string
		marks bool
		runs  func(l *Learner, now mono.Time, calls int64)
	}{
		{"long runs", true, endAfter(longRun)},
		{"long runs", false, endAfter(longRun)},
		{"runs that began before it marked", true, endAfter(time.Minute)},
		{"runs that began before it marked", false, endAfter(time.Minute)},
		{"handoffs", true, func(l *Learner, now mono.Time, calls int64) { l.Handoff(now, calls, true) }},
		{"handoffs", false, func(l *Learner, now mono.Time, calls int64) { l.Handoff(now, calls, true) }},
	} {
		if setExtra(0); test.marks {
			setExtra(1)
		}
		var l Learner
		now, moved := mono.Time(time.Hour), false
		for calls := int64(1000); calls <= 5000; calls += 1000 {
			now = now.Add(spell)
			test.runs(&l, now, calls)
			moved = moved || !l.Inline(now)
		}
		if moved == test.marks {
			t.Errorf("%s while the collector marks (%v): the method moves: %v", test.name, test.marks, moved)
		}
	}
}

// endAfter ends a run that took that long.
func endAfter(took time.Duration) func(l *Learner, now mono.Time, calls int64) {
	return func(l *Learner, now mono.Time, calls int64) {
		r := l.Begin(now.Add(-took), 1)
		l.End(&r, now, func() int64 { return calls }, false)
	}
}

func BenchmarkCollectorMarked(b *testing.B) {
	for b.Loop() {
		process.marked(0)
	}
}

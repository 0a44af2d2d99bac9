// Package awake measures time that passes only while the process runs. Tests use it for limits on
// the schedule of a registry, for example that a lost instance is back within five seconds: a
// machine that is paused for a while, or busy, must not fail them. Only tests import it.
package awake

import (
	"sync/atomic"
	"time"
)

// tick is the resolution of a Clock. On a busy machine a sleep of a few milliseconds would be late
// by as much, which would make the clock much too slow.
const tick = 50 * time.Millisecond

// Clock counts the time in which the process runs. It sleeps repeatedly, and counts the requested
// duration of each sleep, however long it took: so it is a few percent slow, and does not advance
// where other clocks jump.
type Clock struct {
	ticks atomic.Int64
	stop  chan struct{}
	done  chan struct{}
}

// Start returns a clock that runs from now on. It holds a goroutine until Stop.
func Start() *Clock {
	c := &Clock{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for {
			select {
			case <-c.stop:
				return
			case <-time.After(tick):
				c.ticks.Add(1)
			}
		}
	}()
	return c
}

// Elapsed returns the time between Start and now, or Stop. It is safe for concurrent use.
func (c *Clock) Elapsed() time.Duration { return time.Duration(c.ticks.Load()) * tick }

// Stop stops the clock, once, and returns the elapsed time.
func (c *Clock) Stop() time.Duration {
	close(c.stop)
	<-c.done
	return c.Elapsed()
}

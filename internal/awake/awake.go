// Package awake measures time that passes only while the process runs. Tests use it for promises about the schedule of
// a registry, such as that what was lost is back within five seconds: a machine that stands still for a while, or has
// something else to do, must not break them. Only tests import it.
package awake

import (
	"sync/atomic"
	"time"
)

// tick is what a Clock counts at once. A sleep of a few milliseconds would be late by as much on a machine that does no
// more than it can, and the clock much too slow.
const tick = 50 * time.Millisecond

// Clock counts the time in which the process runs. It sleeps again and again, and counts for each sleep what it asked
// for, however long that took: so it is some percent slow, and stands still where other clocks jump.
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

// Stop stops the clock, once, and returns what it shows.
func (c *Clock) Stop() time.Duration {
	close(c.stop)
	<-c.done
	return c.Elapsed()
}

package anser

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The sweep over the connections whose goroutine is parked. Their callers read for themselves, and
// between two calls the connection is unread. When no caller returns, the goroutine must read
// again: it sees the server's DRAIN, its pings and the end of the connection.
//
// A ticker of 2 ms per connection took a quarter of the client's processor time with 5,000
// connections, so one timer of the pool looks at all of them, and only while there are any. Its
// period grows with the cost of a look, so that the looks of the whole process stay below about
// 200,000 connections and 4,000 timers per second. A timer costs more: it starts a goroutine, and
// what it touches is no longer in the caches. At 20,000 timers per second, 5,000 pools with a
// connection each paid 4 of 33 µs per call for the sweep.
const (
	sweepEvery  = 2 * time.Millisecond   // with few connections
	sweepCost   = 5 * time.Microsecond   // added to the period for each connection of the pool
	sweepShare  = 250 * time.Microsecond // added for each pool of the process that has such connections
	sweepAtMost = 2 * time.Second

	maxKeptStandbys = 1024 // capacity that is kept while no goroutine is parked
)

// sweeping counts the pools of the process whose sweep is running.
var sweeping atomic.Int32

// standbys are the connections of a pool whose goroutine is parked.
type standbys struct {
	mu    sync.Mutex // guards the fields below, and the part of readRole that names it
	conns []*clientConn
	timer *time.Timer // runs while conns is not empty
	looks uint64      // sweeps so far; for tests
}

// waitForTurn waits until the reader goroutine must read again.
func (c *clientConn) waitForTurn() {
	c.host.pool.standbys.enlist(c)
	<-c.role.wake
}

// enlist makes the sweep look at c.
func (s *standbys) enlist(c *clientConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.role.unread = false; c.role.listed {
		return
	}
	c.role.listed = true
	s.conns = append(s.conns, c)
	if len(s.conns) == 1 {
		s.timer = time.AfterFunc(sweepPeriod(1, sweeping.Add(1)), s.sweep)
	}
}

func sweepPeriod(conns int, pools int32) time.Duration {
	d := max(sweepEvery, time.Duration(conns)*sweepCost, time.Duration(pools)*sweepShare)
	return min(d, sweepAtMost)
}

// sweep looks at every connection. A connection that was unread since the last look goes back to
// its goroutine.
func (s *standbys) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) == 0 { // forget came first
		return
	}
	s.looks++
	s.lookLocked()
	if n := len(s.conns); n > 0 {
		s.timer.Reset(sweepPeriod(n, sweeping.Load()))
	}
}

// forget drops the connections of a host that was closed.
func (s *standbys) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) > 0 {
		s.lookLocked()
	}
}

// lookLocked looks at every connection, and stops the timer if none is left.
func (s *standbys) lookLocked() {
	s.conns = slices.DeleteFunc(s.conns, func(c *clientConn) bool {
		c.role.listed = c.stillOutLocked()
		return !c.role.listed
	})
	if len(s.conns) == 0 {
		s.timer.Stop()
		sweeping.Add(-1)
		if cap(s.conns) > maxKeptStandbys {
			s.conns = nil
		}
	}
}

// stillOutLocked reports whether the goroutine is still parked. It wakes the goroutine of a
// connection that was unread between two looks.
func (c *clientConn) stillOutLocked() bool {
	r := &c.role
	who, turns := r.who.Load(), r.turns.Load()
	if who == goroutineReads {
		return false
	}
	stale := who == nobodyReads && r.unread && turns == r.lastTurn
	if stale && r.who.CompareAndSwap(nobodyReads, goroutineReads) {
		c.wakeReader()
		return false
	}
	r.unread, r.lastTurn = who == nobodyReads, turns
	return true
}

// Package mono provides monotonic time as a number, at half the cost of time.Now.
package mono

import (
	"sync/atomic"
	"time"
)

// Time is a point in time, in nanoseconds. Only differences within a process have a meaning. Times
// are compared with operators, min and max. They are shifted with Add and subtracted with Sub. The
// zero value is earlier than all other times and can mean "none".
type Time int64

// epoch keeps times small.
var epoch = time.Now().Add(-beginning)

// beginning is the time at which the process starts. It is decades, so that times are positive
// even in a synctest bubble, whose clock begins in the year 2000.
const beginning = 50 * 365 * 24 * time.Hour

// Now returns the current time.
func Now() Time { return Time(time.Since(epoch)) }

// Since returns the time that has passed since t.
func Since(t Time) time.Duration { return Now().Sub(t) }

// Until returns the time that passes until t; it is negative if t has passed.
func Until(t Time) time.Duration { return t.Sub(Now()) }

// Add returns the time d after t, or before it if d is negative.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the time that passes from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Nanoseconds returns t as a number, for code that knows times only as numbers.
func (t Time) Nanoseconds() int64 { return int64(t) }

// Wall returns t on the wall clock, as of the start of the process.
func (t Time) Wall() time.Time { return epoch.Add(time.Duration(t)) }

// Atomic is a Time that several goroutines may use. The zero value holds the zero Time.
type Atomic struct{ ns atomic.Int64 }

// Load returns the time.
func (a *Atomic) Load() Time { return Time(a.ns.Load()) }

// Store sets the time.
func (a *Atomic) Store(t Time) { a.ns.Store(int64(t)) }

// Swap sets the time and returns the previous one.
func (a *Atomic) Swap(t Time) (old Time) { return Time(a.ns.Swap(int64(t))) }

// CompareAndSwap sets the time to t if it is old, and reports whether it did.
func (a *Atomic) CompareAndSwap(old, t Time) bool { return a.ns.CompareAndSwap(int64(old), int64(t)) }

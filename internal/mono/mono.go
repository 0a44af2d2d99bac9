// Package mono provides monotonic time as a number, at half the cost of time.Now.
package mono

import "time"

// Time is a point in time in nanoseconds. Only differences within a process have a meaning; 0 is
// earlier than all of them and can mean "never".
type Time = int64

// epoch keeps times small.
var epoch = time.Now().Add(-beginning)

// beginning is the time at which the process starts. It is decades, so that times are positive
// even in a synctest bubble, whose clock begins in the year 2000.
const beginning = 50 * 365 * 24 * time.Hour

// Now returns the current time.
func Now() Time { return Time(time.Since(epoch)) }

// Wall returns t on the wall clock, as of the start of the process.
func Wall(t Time) time.Time { return epoch.Add(time.Duration(t)) }

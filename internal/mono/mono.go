// Package mono provides monotonic time as a number, for half the price of time.Now.
package mono

import "time"

// Time is a point in time in nanoseconds. Only differences between points of one process mean
// something; 0 is earlier than all of them and can mean "never".
type Time = int64

// epoch makes times small.
var epoch = time.Now().Add(-beginning)

// beginning is the time at which the process starts. With decades before it, times are positive
// even in a synctest bubble, whose clock begins in the year 2000.
const beginning = 50 * 365 * 24 * time.Hour

// Now returns the current time.
func Now() Time { return Time(time.Since(epoch)) }

// Wall returns t on the wall clock, as of the start of the process.
func Wall(t Time) time.Time { return epoch.Add(time.Duration(t)) }

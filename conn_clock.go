package anser

import "time"

// epoch makes monotonic times small: only differences of nanotime matter.
var epoch = time.Now().Add(-beginning)

// beginning is the nanotime at which the process starts. With decades before it, times are positive and 0 can mean
// "never" even in a synctest bubble, whose clock begins in the year 2000.
const beginning = 50 * 365 * 24 * time.Hour

// nanotime returns a monotonic time in nanoseconds, for half the price of time.Now.
func nanotime() int64 { return int64(time.Since(epoch)) }

//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Self returns the CPU time of this process.
func Self() (time.Duration, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, ErrUnknown
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}

//go:build unix

package anser_test

import (
	"syscall"
	"time"
)

// processorTime returns the processor time that the process has used.
func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // cannot fail for the process itself
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

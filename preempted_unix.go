//go:build unix

package anser

import "syscall"

// preemptions returns how often the operating system has taken a processor away from this process.
func preemptions() int64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return int64(r.Nivcsw)
}

//go:build unix

package anser

import "syscall"

// processUsage returns what the process has used so far.
func processUsage() usage {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return usage{}
	}
	return usage{preempted: int64(r.Nivcsw), cpu: r.Utime.Nano() + r.Stime.Nano()}
}

// preemptions returns how often the operating system has taken a processor away from this process.
func preemptions() int64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return int64(r.Nivcsw)
}

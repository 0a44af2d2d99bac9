//go:build unix

package sysusage

import "syscall"

// CurrentProcess returns what the process has used so far.
func CurrentProcess() Process {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return Process{}
	}
	return Process{CPU: r.Utime.Nano() + r.Stime.Nano(), Preempted: int64(r.Nivcsw)}
}

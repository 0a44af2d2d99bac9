package anser

import "syscall"

// currentThread returns what the calling thread has used so far.
func currentThread() threadUsage {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &r) != nil {
		return threadUsage{}
	}
	return threadUsage{
		id: syscall.Gettid(), cpu: r.Utime.Nano() + r.Stime.Nano(),
		preempted: int64(r.Nivcsw), waited: int64(r.Nvcsw),
	}
}

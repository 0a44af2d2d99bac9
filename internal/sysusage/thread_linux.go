package sysusage

import "syscall"

// CurrentThread returns what the calling thread has used so far.
func CurrentThread() Thread {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &r) != nil {
		return Thread{}
	}
	return Thread{
		ID: syscall.Gettid(), CPU: r.Utime.Nano() + r.Stime.Nano(),
		Preempted: int64(r.Nivcsw), Waited: int64(r.Nvcsw),
	}
}

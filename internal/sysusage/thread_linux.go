package sysusage

import (
	"syscall"
	"unsafe"
)

// threadClock is CLOCK_THREAD_CPUTIME_ID.
const threadClock = 3

// CurrentThread returns what the calling thread has used so far.
func CurrentThread() Thread {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &r) != nil {
		return Thread{}
	}
	// The times in r may lag behind by a tick of the kernel, which is some milliseconds.
	var used syscall.Timespec
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&used)), 0); err != 0 {
		return Thread{}
	}
	return Thread{ID: syscall.Gettid(), CPU: used.Nano(), Preempted: int64(r.Nivcsw), Waited: int64(r.Nvcsw)}
}

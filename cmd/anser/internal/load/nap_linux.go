package load

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// precise makes the kernel wake this thread within a microsecond of the requested time; the
// default timer slack is 50.
func precise() { unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// nap sleeps in the kernel, without the runtime's timers.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil)
}

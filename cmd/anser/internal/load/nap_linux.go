package load

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// precise lets the kernel wake this thread within a microsecond of what it asked for; the default
// slack of timers is 50.
func precise() { unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// nap sleeps in the kernel, past the runtime's timers.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil)
}

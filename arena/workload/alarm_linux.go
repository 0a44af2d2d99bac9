package workload

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// timerFD is a timer of the kernel that the runtime polls like a connection, so that its wake-up
// does not depend on the runtime's own timers, which an idle program rounds up to milliseconds.
type timerFD struct {
	file *os.File
	conn syscall.RawConn // of file
	buf  [8]byte         // how often it expired; always once
}

// itimerspec is the argument of timerfd_settime(2).
type itimerspec struct{ interval, value syscall.Timespec }

const clockMonotonic = 1

func newAlarm() (alarm, error) {
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, fmt.Errorf("timerfd_create: %w", errno)
	}
	t := &timerFD{file: os.NewFile(fd, "timerfd")}
	var err error
	t.conn, err = t.file.SyscallConn()
	return t, err
}

func (t *timerFD) wait(d time.Duration) error {
	set := itimerspec{value: syscall.NsecToTimespec(int64(d))}
	var errno syscall.Errno
	err := t.conn.Control(func(fd uintptr) {
		// Raw, for it does not block.
		_, _, errno = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&set)), 0, 0, 0)
	})
	if err != nil {
		return err
	}
	if errno != 0 {
		return fmt.Errorf("timerfd_settime: %w", errno)
	}
	_, err = t.file.Read(t.buf[:])
	return err
}

func (t *timerFD) close() { t.file.Close() }

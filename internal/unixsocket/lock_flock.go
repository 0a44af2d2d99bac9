//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package unixsocket

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock keeps other servers from replacing the socket until unlock is called. The lock is on a file
// next to the socket, which exists only as long; the kernel releases the lock of a process that
// dies.
func lock(path string) (unlock func(), err error) {
	name := path + ".lock"
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil && isAt(f, name):
			return func() {
				os.Remove(name) // before another server can have the lock
				f.Close()
			}, nil
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS):
			return func() { f.Close() }, nil // the file system knows no locks
		}
		f.Close()
		if err != nil && err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("another process has had %s locked for %v: it may be starting a server there", name, patience)
		}
	}
}

// isAt reports whether the file is still the one of that name, which the last holder of its lock
// may have removed.
func isAt(f *os.File, name string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(name)
	return err == nil && os.SameFile(held, there)
}

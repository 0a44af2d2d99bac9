//go:build unix

package mdns

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// share allows other processes on this host to use the same port, such as the system's own mDNS
// daemon.
func share(_, _ string, c syscall.RawConn) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		if err == nil {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}
	}), err)
}

package mdns

import (
	"errors"
	"syscall"
)

// share allows other processes on this host to use the same port, such as the system's own mDNS
// daemon.
func share(_, _ string, c syscall.RawConn) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(syscall.Handle(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}), err)
}

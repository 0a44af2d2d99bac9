package sysconn

import "syscall"

// ReusePort is for net.ListenConfig.
func ReusePort(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEPORT, 1)
	}); e != nil {
		return e
	}
	return err
}

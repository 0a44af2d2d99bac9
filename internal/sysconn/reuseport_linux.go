//go:build !mips && !mipsle && !mips64 && !mips64le

package sysconn

import "syscall"

// soReusePort is SO_REUSEPORT, which package syscall lacks.
const soReusePort = 0xf

// ReusePort is for net.ListenConfig.
func ReusePort(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, soReusePort, 1) }); e != nil {
		return e
	}
	return err
}

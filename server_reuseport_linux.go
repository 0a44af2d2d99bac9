//go:build !mips && !mipsle && !mips64 && !mips64le

package anser

import "syscall"

// soReusePort is SO_REUSEPORT, which package syscall lacks.
const soReusePort = 0xf

// reusePort is for net.ListenConfig.
func reusePort(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, soReusePort, 1) }); e != nil {
		return e
	}
	return err
}

//go:build unix

package sysconn

import (
	"net"
	"syscall"
)

// socketOf returns the socket of a connection over TCP or a unix socket, or nil for others, such as
// those with TLS.
func socketOf(nc net.Conn) syscall.RawConn {
	var c syscall.Conn
	switch nc := nc.(type) {
	case *net.TCPConn:
		c = nc
	case *net.UnixConn:
		c = nc
	default:
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

package doctor

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// pathMTU returns the largest packet, in bytes, that the kernel sends on the way of a connection;
// 0 if it is not known.
func pathMTU(nc net.Conn) (bytes int) {
	c, ok := nc.(syscall.Conn)
	remote, tcp := nc.RemoteAddr().(*net.TCPAddr)
	if !ok || !tcp {
		return 0
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	level, option := unix.IPPROTO_IPV6, unix.IPV6_MTU
	if remote.IP.To4() != nil {
		level, option = unix.IPPROTO_IP, unix.IP_MTU
	}
	raw.Control(func(fd uintptr) {
		if n, err := unix.GetsockoptInt(int(fd), level, option); err == nil {
			bytes = n
		}
	})
	return bytes
}

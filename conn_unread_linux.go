package anser

import (
	"net"
	"syscall"
	"unsafe"
)

// unread asks a socket how many bytes wait to be read. It is for one goroutine at a time.
type unread struct {
	raw syscall.RawConn
}

func newUnread(nc net.Conn) (unread, bool) {
	var c syscall.Conn
	switch nc := nc.(type) {
	case *net.TCPConn:
		c = nc
	case *net.UnixConn:
		c = nc
	default:
		return unread{}, false
	}
	raw, err := c.SyscallConn()
	return unread{raw}, err == nil
}

func (u unread) bytes() int {
	var n int32
	err := u.raw.Control(func(fd uintptr) {
		syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&n)))
	})
	if err != nil {
		return 0
	}
	return int(n)
}

package sysconn

import (
	"net"
	"syscall"
)

// WriteLast writes the last bytes of a TCP connection that is closed right afterwards, so that they
// travel with its end, in one segment. It does not block, and reports whether it has written them.
// It does not if there is unread input: closing the connection then resets it, and drops bytes that
// wait for its end.
func WriteLast(nc net.Conn, p []byte) (written bool) {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		var unread [1]byte
		if n, _, _ := syscall.Recvfrom(int(fd), unread[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT); n > 0 {
			return
		}
		n, err := syscall.SendmsgN(int(fd), p, nil, nil, syscall.MSG_MORE|syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
		written = err == nil && n == len(p)
	})
	return written
}

package sysconn

import (
	"net"
	"syscall"
	"unsafe"
)

// ReadQueue returns the length of a socket's receive queue.
type ReadQueue struct {
	raw syscall.RawConn
}

// NewReadQueue returns the queue of nc; ok is false for connections that are not sockets.
func NewReadQueue(nc net.Conn) (ReadQueue, bool) {
	raw := socketOf(nc)
	return ReadQueue{raw}, raw != nil
}

// Len returns the number of unread bytes.
func (u ReadQueue) Len() int {
	var n int32
	err := u.raw.Control(func(fd uintptr) {
		syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&n)))
	})
	if err != nil {
		return 0
	}
	return int(n)
}

// Wait waits until there are unread bytes, or the next read ends without any.
func (u ReadQueue) Wait() {
	u.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return err != syscall.EAGAIN && err != syscall.EINTR
	})
}

package sysconn

import (
	"syscall"
	"unsafe"
)

// tcpNotSentLowat is TCP_NOTSENT_LOWAT, which package syscall lacks.
const tcpNotSentLowat = 25

// LimitUnsent makes the system accept bytes only while fewer than n were not sent yet, so that what
// is written next waits for little. 0 removes the limit.
func (s *Writer) LimitUnsent(n int) {
	s.raw.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, n)
	})
}

// writeBoth writes head and out, of which head is not empty, with one system call.
func writeBoth(fd uintptr, head, out []byte) (n int, err error) {
	v := [2]syscall.Iovec{{Base: unsafe.SliceData(head)}, {Base: unsafe.SliceData(out)}}
	v[0].SetLen(len(head))
	v[1].SetLen(len(out))
	done, _, code := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)))
	if code != 0 {
		return -1, code
	}
	return int(done), nil
}

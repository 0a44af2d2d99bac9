//go:build unix

package sysconn

import (
	"net"
	"os"
	"syscall"
)

// Writer writes what a connection accepts at once, and never blocks. Not safe for concurrent use.
type Writer struct {
	raw   syscall.RawConn
	write func(fd uintptr) bool // writeOnce, as a value that is created once

	// State of a write.
	head, out []byte
	n         int
	err       error
}

// NewWriter returns nil if the connection does not support non-blocking writes, for example with
// TLS, which must write whole records.
func NewWriter(nc net.Conn) *Writer {
	raw := socketOf(nc)
	if raw == nil {
		return nil
	}
	s := &Writer{raw: raw}
	s.write = s.writeOnce
	return s
}

// TryWrite returns how many bytes of out the system accepted. Fewer than all without an error
// means that the rest must wait.
func (s *Writer) TryWrite(out []byte) (taken int, err error) { return s.TryWriteBoth(nil, out) }

// TryWriteBoth writes head and then out, as TryWrite does. Most systems write both at once.
func (s *Writer) TryWriteBoth(head, out []byte) (taken int, err error) {
	s.head, s.out = head, out
	err = s.raw.Write(s.write)
	s.head, s.out = nil, nil
	switch {
	case err != nil:
		return 0, err
	case s.err == syscall.EAGAIN:
		return 0, nil
	case s.err != nil:
		return 0, os.NewSyscallError("write", s.err)
	}
	return s.n, nil
}

func (s *Writer) writeOnce(fd uintptr) (done bool) {
	for {
		if len(s.head) > 0 {
			s.n, s.err = writeBoth(fd, s.head, s.out)
		} else {
			s.n, s.err = syscall.Write(int(fd), s.out)
		}
		if s.err != syscall.EINTR {
			return true
		}
	}
}

package anser

import (
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// A goroutine that waits for the network lets its processor fall asleep, and waking it takes longer
// than a whole call does on a fast network. So where one call follows the other, a reader that has
// seen its peer answer quickly looks for the next bytes for a moment before it waits.
//
// Only one reader of the process does so at a time, only with a processor to spare, and it stops as
// soon as its peer has been slow once.
const (
	spinFor    = 40 * time.Microsecond
	spinAfter  = 8  // quick answers in a row
	spinPause  = 64 // reads without looking after the peer was slow
	spinYields = 4  // looks between two chances for other goroutines
)

// spinning is the single permission to spin; see docs/decisions.
var spinning atomic.Bool

// spinner is the state of one reader. It belongs to the goroutine that reads.
type spinner struct {
	raw   syscall.RawConn // nil: cannot spin on this connection
	quick int             // quick answers in a row; negative: reads to go without looking
	buf   []byte
	n     int
	err   error
	look  func(fd uintptr) bool // bound once, so that a look allocates nothing
}

func newSpinner(nc net.Conn) *spinner {
	s := new(spinner)
	if c, ok := nc.(syscall.Conn); ok && canSpin && runtime.GOMAXPROCS(0) > 1 {
		if raw, err := c.SyscallConn(); err == nil {
			s.raw = raw
			s.look = func(fd uintptr) bool {
				s.n, s.err = readNonblocking(fd, s.buf)
				return true // never wait here
			}
		}
	}
	return s
}

// read tries to get bytes without waiting. ok is false when there were none in time, or it is not
// worth trying.
func (s *spinner) read(buf []byte) (n int, ok bool, err error) {
	if s.raw == nil || s.quick < spinAfter || !spinning.CompareAndSwap(false, true) {
		return 0, false, nil
	}
	defer spinning.Store(false)
	s.buf = buf
	end := nanotime() + int64(spinFor)
	for i := 1; ; i++ {
		if err := s.raw.Read(s.look); err != nil {
			return 0, true, err
		}
		if s.n > 0 {
			return s.n, true, nil
		}
		if s.err == nil {
			return 0, true, io.EOF
		}
		if !wouldBlock(s.err) {
			return 0, false, nil // the ordinary read reports it
		}
		if nanotime() > end {
			s.quick = -spinPause
			return 0, false, nil
		}
		if i%spinYields == 0 {
			runtime.Gosched()
		}
	}
}

// note learns how long a read had to wait.
func (s *spinner) note(waited int64) {
	switch {
	case s.quick < 0:
		s.quick++
	case waited <= int64(2*spinFor):
		s.quick = min(s.quick+1, spinAfter)
	default:
		s.quick = 0
	}
}

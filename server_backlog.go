package anser

import (
	"net"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysconn"
)

// sockDelay measures how long the bytes read from a connection have waited in the socket. A
// goroutine that reads and runs handlers does not see that, and the deadlines of calls count from
// when they were read.
//
// Now and then it asks the socket how many bytes are in it, and marks where they end. The bytes
// up to the mark had arrived by then, so the measured time is never too long; it is too short by
// up to markSpacing.
type sockDelay struct {
	socket  sysconn.ReadQueue
	taken   int64         // bytes read
	waited  time.Duration // how long the first of the bytes read last have waited, at least
	at, num int           // marks[at] is the first of num
	marks   [16]arrivalMark
}

// arrivalMark records that all bytes before end had arrived at the time when.
type arrivalMark struct {
	end  int64
	when mono.Time
}

const markSpacing = 4 * time.Millisecond

// newSockDelay returns nil where the socket cannot be asked.
func newSockDelay(nc net.Conn) *sockDelay {
	socket, ok := sysconn.NewReadQueue(nc)
	if !ok {
		return nil
	}
	return &sockDelay{socket: socket}
}

// fill makes the reader read once.
func (b *sockDelay) fill(rd *reader) error {
	b.taken = rd.progress.received.Load() // with what was thrown away since
	err := rd.fill()
	b.note(mono.Now(), rd.progress.received.Load()-b.taken, b.socket.Len)
	return err
}

// note records a read of n bytes that has just ended; unread returns how many more are in the
// socket.
func (b *sockDelay) note(now mono.Time, n int64, unread func() int) {
	for b.num > 0 && b.marks[b.at].end <= b.taken {
		b.at = (b.at + 1) % len(b.marks)
		b.num--
	}
	b.waited = 0
	if b.num > 0 {
		b.waited = now.Sub(b.marks[b.at].when)
	}
	b.taken += n
	if n < smallRead {
		b.num = 0 // the socket is empty
		return
	}
	last := (b.at + b.num + len(b.marks) - 1) % len(b.marks)
	if b.num == len(b.marks) || b.num > 0 && now.Sub(b.marks[last].when) < markSpacing {
		return
	}
	if more := unread(); more > 0 {
		b.marks[(b.at+b.num)%len(b.marks)] = arrivalMark{b.taken + int64(more), now}
		b.num++
	}
}

// waited returns how long the next call has waited, as far as it is known.
func (s *reading) waited() time.Duration {
	d := s.now.Sub(s.arrived)
	if s.sockDelay != nil {
		d += s.sockDelay.waited
	}
	return d
}

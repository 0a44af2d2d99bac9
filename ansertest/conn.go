package ansertest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conn is one end of a connection in memory. Unlike a net.Pipe it has buffers, and like TCP it can
// be closed in one direction. After it is closed, the other end can still read the data written
// before. All methods are safe for concurrent use.
type Conn struct {
	in, out       *stream
	local, remote Addr
	onClose       func() // called by the first Close; may be nil
	closing       sync.Once
}

// Pipe returns the two ends of a connection whose directions hold DefaultBuffer bytes each.
func Pipe() (client, server *Conn) { return pipe(0, "client", "server") }

func pipe(buffer int, clientAddr, serverAddr Addr) (client, server *Conn) {
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	up, down := newStream(buffer), newStream(buffer)
	return &Conn{in: down, out: up, local: clientAddr, remote: serverAddr},
		&Conn{in: up, out: down, local: serverAddr, remote: clientAddr}
}

// Read implements net.Conn. It returns io.EOF when the other end is closed and all data has been
// read.
func (c *Conn) Read(b []byte) (int, error) { return c.in.read(b) }

// Write implements net.Conn. It blocks while the buffer is full.
func (c *Conn) Write(b []byte) (int, error) { return c.out.write(b) }

// CloseWrite closes the direction from this end: the other end reads the remaining data, then
// io.EOF.
func (c *Conn) CloseWrite() error {
	c.out.end()
	return nil
}

// Close implements net.Conn. It may be called more than once.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		c.out.end()
		c.in.abandon()
		if c.onClose != nil {
			c.onClose()
		}
	})
	return nil
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn. It also applies to a blocked read.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.in.setDeadline(&c.in.readBy, t) }

// SetWriteDeadline implements net.Conn. It also applies to a blocked write.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.out.setDeadline(&c.out.writeBy, t) }

// stream is one direction of a connection.
type stream struct {
	limit int

	mu        sync.Mutex // guards the fields below
	changed   sync.Cond  // signalled after every change
	buf       []byte
	at        int  // buf[at:] is unread
	ended     bool // no more writes: EOF follows the data in buf
	abandoned bool // no more reads
	readBy    deadline
	writeBy   deadline
}

// deadline is the deadline of one kind of operation; guarded by the mutex of its stream.
type deadline struct {
	timer *time.Timer
	over  bool
}

func newStream(limit int) *stream {
	s := &stream{limit: limit}
	s.changed.L = &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.abandoned:
			return 0, net.ErrClosed
		case s.readBy.over:
			return 0, os.ErrDeadlineExceeded
		case len(s.buf) > 0 || len(b) == 0:
			n := copy(b, s.buf[s.at:])
			if s.at += n; s.at == len(s.buf) {
				s.buf, s.at = s.buf[:0], 0
			}
			s.changed.Broadcast()
			return n, nil
		case s.ended:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ended:
			return n, net.ErrClosed
		case s.abandoned:
			return n, syscall.EPIPE
		case s.writeBy.over:
			return n, os.ErrDeadlineExceeded
		case len(b) == 0:
			return n, nil
		}
		if room := s.limit - (len(s.buf) - s.at); room > 0 {
			part := b[:min(room, len(b))]
			if len(s.buf)+len(part) > cap(s.buf) && s.at > 0 {
				s.buf = s.buf[:copy(s.buf, s.buf[s.at:])]
				s.at = 0
			}
			s.buf = append(s.buf, part...)
			n += len(part)
			b = b[len(part):]
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
}

// end implements Close and CloseWrite of the writer.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.writeBy.stop()
	s.changed.Broadcast()
}

// abandon implements Close of the reader.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	s.buf, s.at = nil, 0
	s.readBy.stop()
	s.changed.Broadcast()
}

func (s *stream) setDeadline(d *deadline, t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.stop()
	if s.abandoned && d == &s.readBy || s.ended && d == &s.writeBy {
		return net.ErrClosed
	}
	d.over = false
	if !t.IsZero() {
		d.set(s, time.Until(t))
	}
	s.changed.Broadcast()
	return nil
}

// set sets the deadline to now plus wait. The mutex of s is held.
func (d *deadline) set(s *stream, wait time.Duration) {
	if wait <= 0 {
		d.over = true
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.timer == timer { // it was not replaced while it fired
			d.over = true
			s.changed.Broadcast()
		}
	})
	d.timer = timer
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

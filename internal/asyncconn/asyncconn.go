// Package asyncconn implements a net.Conn over a transport whose reads cannot be interrupted, or
// not without closing it.
package asyncconn

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Below is the underlying transport of a Conn.
type Below interface {
	// Read returns the received data, and io.EOF when the peer has closed its direction. It is
	// called by one goroutine.
	Read(b []byte) (int, error)
	// Write sends all of b. It is never called concurrently.
	Write(b []byte) error
	// CloseWrite closes the direction from this side.
	CloseWrite() error
	// Close closes both directions: Read and Write, which may be blocked, must return soon. Data
	// written before should still arrive. It must not block, and is called once; blocked means
	// that a write is in progress.
	Close(blocked bool)
}

// Conn is a net.Conn with deadlines and CloseWrite. A goroutine reads one piece ahead; it ends
// when Below's Read fails. Read must not be called concurrently; all other methods may be.
type Conn struct {
	below         Below
	local, remote net.Addr

	pieces  chan []byte   // from the reader goroutine
	taken   chan struct{} // the piece was consumed
	rest    []byte        // of a piece; owned by Read
	ended   chan struct{} // closed when reading has ended, with readErr
	readErr error
	closed  chan struct{}
	closing sync.Once
	read    deadline
	write   deadline
	order   sync.Mutex  // held during a write
	writing atomic.Bool // a write is in progress
}

// pieceSize is the number of bytes that the reader goroutine passes on at once.
const pieceSize = 16 << 10

// New returns a connection over b.
func New(b Below, local, remote net.Addr) *Conn {
	c := &Conn{
		below: b, local: local, remote: remote,
		pieces: make(chan []byte), taken: make(chan struct{}, 1), ended: make(chan struct{}), closed: make(chan struct{}),
	}
	c.read.init()
	c.write.init()
	go c.pump()
	return c
}

// pump passes on the received data. After Close it keeps reading and discards the data, so that b
// sees the end of the peer's direction.
func (c *Conn) pump() {
	buf := make([]byte, pieceSize)
	for {
		n, err := c.below.Read(buf)
		if n > 0 && !c.handOver(buf[:n]) {
			buf = make([]byte, 1<<10) // a Read that began before Close may still use the old one
		}
		if err != nil {
			c.readErr = err
			close(c.ended)
			return
		}
	}
}

// handOver reports whether the piece was consumed, rather than the connection closed.
func (c *Conn) handOver(piece []byte) bool {
	select {
	case c.pieces <- piece:
	case <-c.closed:
		return false
	}
	select {
	case <-c.taken:
		return true
	case <-c.closed:
		return false
	}
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	over := c.read.wait()
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	case <-over:
		return 0, os.ErrDeadlineExceeded
	default:
	}
	if len(c.rest) == 0 {
		select {
		case c.rest = <-c.pieces:
		case <-c.ended:
			return 0, c.readErr
		case <-over:
			return 0, os.ErrDeadlineExceeded
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	n := copy(b, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
		c.taken <- struct{}{}
	}
	return n, nil
}

// Write implements net.Conn. A deadline that passes while it is blocked ends the connection.
func (c *Conn) Write(b []byte) (int, error) {
	if err := c.send(func() error { return c.below.Write(b) }); err != nil {
		return 0, err
	}
	return len(b), nil
}

// closeTime is how long CloseWrite may be blocked, as in crypto/tls.
const closeTime = 5 * time.Second

// CloseWrite closes the direction from this side; data written before still arrives. Where that
// sends something, and the peer does not take it within 5 seconds, the connection ends.
func (c *Conn) CloseWrite() error {
	c.SetWriteDeadline(time.Now().Add(closeTime))
	return c.send(c.below.CloseWrite)
}

func (c *Conn) send(f func() error) error {
	c.order.Lock()
	defer c.order.Unlock()
	select {
	case <-c.closed:
		return net.ErrClosed
	default:
	}
	select {
	case <-c.write.wait():
		return os.ErrDeadlineExceeded
	default:
	}
	c.writing.Store(true)
	defer c.writing.Store(false)
	err := f()
	if err != nil && err != io.EOF {
		select {
		case <-c.write.wait():
			return os.ErrDeadlineExceeded
		default:
		}
	}
	return err
}

// Close implements net.Conn. It does not block and may be called more than once.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		close(c.closed)
		if c.order.TryLock() { // no write is in progress, and none can start
			c.below.Close(false)
			c.order.Unlock()
		} else {
			c.below.Close(true)
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

// SetReadDeadline implements net.Conn. It also applies to a blocked Read.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.read.set(t, nil)
	return nil
}

// SetWriteDeadline implements net.Conn. It also applies to a blocked Write.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t, func() {
		if c.writing.Load() {
			c.Close()
		}
	})
	return nil
}

// deadline is the deadline of reads or writes.
type deadline struct {
	mu    sync.Mutex // guards the fields below
	timer *time.Timer
	over  chan struct{} // closed at the deadline
}

func (d *deadline) init() { d.over = make(chan struct{}) }

// wait returns a channel that is closed at the deadline, unless that is changed before.
func (d *deadline) wait() chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// set changes the deadline; the zero time means none. then, if not nil, is called at the deadline.
func (d *deadline) set(t time.Time, then func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.over // its function is running: let it end
	}
	d.timer = nil
	select {
	case <-d.over:
		d.over = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	over := d.over
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() {
			close(over)
			if then != nil {
				then()
			}
		})
		return
	}
	close(over)
	if then != nil {
		go then()
	}
}

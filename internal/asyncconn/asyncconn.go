// Package asyncconn makes a net.Conn of a transport whose own reads cannot be interrupted, or not without
// ending it.
package asyncconn

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Below is what a Conn is made of.
type Below interface {
	// Read returns what has arrived, and io.EOF when the other side has ended its direction. One
	// goroutine calls it.
	Read(b []byte) (int, error)
	// Write sends all of b. One goroutine calls it at a time.
	Write(b []byte) error
	// CloseWrite ends the direction from this side.
	CloseWrite() error
	// Close ends everything: Read and Write, which may be blocked, return soon. What was written before
	// should arrive. It does not block, and is called once; blocked tells that a write is in progress.
	Close(blocked bool)
}

// Conn is a net.Conn with deadlines and CloseWrite. A goroutine reads ahead, one piece; it ends when Below's Read
// fails. Read is for one goroutine at a time, everything else for any number.
type Conn struct {
	below         Below
	local, remote net.Addr

	pieces  chan []byte   // from the goroutine that reads
	taken   chan struct{} // the piece was used up
	rest    []byte        // of a piece; belongs to Read
	ended   chan struct{} // closed when reading has ended, with readErr
	readErr error
	closed  chan struct{}
	closing sync.Once
	read    deadline
	write   deadline
	order   sync.Mutex  // held while writing
	writing atomic.Bool // a write is in progress
}

// pieceSize is what the goroutine that reads hands over at once.
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

// pump hands over what arrives. After Close it reads on and drops what comes, so that b sees the end of
// the other side.
func (c *Conn) pump() {
	buf := make([]byte, pieceSize)
	for {
		n, err := c.below.Read(buf)
		if n > 0 && !c.handOver(buf[:n]) {
			buf = make([]byte, 1<<10) // a Read that began before Close may still have the old one
		}
		if err != nil {
			c.readErr = err
			close(c.ended)
			return
		}
	}
}

// handOver reports whether the piece was used up, and not the connection closed.
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

// CloseWrite ends the direction from this side; what was written arrives.
func (c *Conn) CloseWrite() error { return c.send(c.below.CloseWrite) }

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
		if c.order.TryLock() { // nobody writes, and from now on nobody will
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

// SetReadDeadline implements net.Conn. It holds for a Read that is blocked already.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.read.set(t, nil)
	return nil
}

// SetWriteDeadline implements net.Conn. It holds for a Write that is blocked already.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t, func() {
		if c.writing.Load() {
			c.Close()
		}
	})
	return nil
}

// deadline is the end of the time of reads or writes.
type deadline struct {
	mu    sync.Mutex // guards what follows
	timer *time.Timer
	over  chan struct{} // closed when the time is over
}

func (d *deadline) init() { d.over = make(chan struct{}) }

// wait returns a channel that is closed when the time is over, unless it is changed before.
func (d *deadline) wait() chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// set changes the time; a zero one never ends. then, if not nil, is called when it is over.
func (d *deadline) set(t time.Time, then func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.over // its function runs: let it end
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

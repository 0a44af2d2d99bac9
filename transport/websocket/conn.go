package websocket

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// conn makes a stream of bytes of a connection of WebSocket. A deadline of websocket.Conn ends the whole
// connection, so a goroutine reads, and deadlines of Read end the waiting for it only.
type conn struct {
	ws            *websocket.Conn
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
	writing atomic.Bool // a write is in progress
}

// tlsConn is a connection over TLS, whose state the server wants.
type tlsConn struct {
	*conn
	state *tls.ConnectionState
}

// ConnectionState returns the state of TLS below WebSocket.
func (c *tlsConn) ConnectionState() tls.ConnectionState { return *c.state }

// pieceSize is what the goroutine that reads hands over at once.
const pieceSize = 16 << 10

func newConn(ws *websocket.Conn, local, remote net.Addr) *conn {
	ws.SetReadLimit(MaxMessage)
	c := &conn{
		ws: ws, local: local, remote: remote,
		pieces: make(chan []byte), taken: make(chan struct{}, 1), ended: make(chan struct{}), closed: make(chan struct{}),
	}
	c.read.init()
	c.write.init()
	go c.pump() // until Close, or until the other side has ended
	return c
}

// pump hands over what arrives.
func (c *conn) pump() {
	defer close(c.ended)
	buf := make([]byte, pieceSize)
	for {
		kind, r, err := c.ws.Reader(context.Background())
		if err != nil {
			c.readErr = endOf(err)
			return
		}
		if kind != websocket.MessageBinary {
			c.readErr = c.ws.Close(websocket.StatusUnsupportedData, "messages must be binary")
			if c.readErr == nil {
				c.readErr = io.ErrUnexpectedEOF
			}
			return
		}
		empty := true
		for {
			n, err := r.Read(buf)
			if n > 0 {
				empty = false
				if !c.handOver(buf[:n]) {
					c.readErr = net.ErrClosed
					return
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				c.readErr = endOf(err)
				return
			}
		}
		if empty { // the other side writes nothing more
			c.readErr = io.EOF
			return
		}
	}
}

func (c *conn) handOver(piece []byte) bool {
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

// endOf returns io.EOF for the regular end of a connection.
func endOf(err error) error {
	if s := websocket.CloseStatus(err); s == websocket.StatusNormalClosure || s == websocket.StatusGoingAway {
		return io.EOF
	}
	return err
}

// Read implements net.Conn. It is for one goroutine at a time.
func (c *conn) Read(b []byte) (int, error) {
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
		c.taken <- struct{}{}
	}
	return n, nil
}

// Write implements net.Conn: b travels as one message or more. A deadline that passes while it is blocked ends
// the connection.
func (c *conn) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		part := b[:min(len(b), MaxMessage)]
		if err := c.send(part); err != nil {
			return n, err
		}
		n += len(part)
		b = b[len(part):]
	}
	return n, nil
}

// CloseWrite ends the direction from this side, by an empty message.
func (c *conn) CloseWrite() error { return c.send(nil) }

func (c *conn) send(b []byte) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	case <-c.write.wait():
		return os.ErrDeadlineExceeded
	default:
	}
	c.writing.Store(true)
	defer c.writing.Store(false)
	return c.ws.Write(context.Background(), websocket.MessageBinary, b)
}

// Close implements net.Conn. It waits for the goroutine that reads and may be called more than once.
func (c *conn) Close() error {
	c.closing.Do(func() {
		c.read.set(time.Time{}, nil)
		c.write.set(time.Time{}, nil)
		close(c.closed)
		c.ws.CloseNow()
	})
	<-c.ended
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn. It holds for a Read that is blocked already.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.read.set(t, nil)
	return nil
}

// SetWriteDeadline implements net.Conn. It holds for a Write that is blocked already.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t, func() {
		if c.writing.Load() {
			c.ws.CloseNow()
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

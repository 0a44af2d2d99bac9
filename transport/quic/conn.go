package quic

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// conn is a QUIC stream as a connection.
type conn struct {
	stream    *quic.Stream
	quic      *quic.Conn
	onEnd     func() // called once, by Close
	onRefused func() // nil, or called when the server refuses further streams

	writing sync.Mutex // held by Write and CloseWrite
	closing sync.Once
}

func newConn(s *quic.Stream, c *quic.Conn, onEnd func()) *conn {
	return &conn{stream: s, quic: c, onEnd: onEnd}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.stream.Read(b)
	if err != nil && c.onRefused != nil {
		if e, ok := errors.AsType[*quic.StreamError](err); ok && e.Remote && e.ErrorCode == refused {
			c.onRefused()
			err = errRefused
		}
	}
	return n, err
}

var errRefused = errors.New("the server refuses further streams on this QUIC connection: it is stopping")

// refuse ends a stream that will not be accepted.
func (c *conn) refuse() {
	c.stream.CancelRead(refused)
	c.stream.CancelWrite(refused)
	c.closing.Do(c.onEnd)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.stream.Write(b)
}

// CloseWrite closes the direction from this side; data written before still arrives.
func (c *conn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.stream.Close()
}

// Close implements net.Conn. As with TCP, data written before still arrives, unless a write is
// blocked, which Close ends. It may be called more than once.
func (c *conn) Close() error {
	c.closing.Do(func() {
		c.stream.CancelRead(0)
		if c.writing.TryLock() {
			c.stream.Close()
			c.writing.Unlock()
		} else {
			c.stream.CancelWrite(0)
		}
		c.onEnd()
	})
	return nil
}

// ConnectionState returns the TLS state of the QUIC connection.
func (c *conn) ConnectionState() tls.ConnectionState { return c.quic.ConnectionState().TLS }

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.quic.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.quic.RemoteAddr() }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.stream.SetDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.stream.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.stream.SetWriteDeadline(t) }

package protocols

import (
	"io"
	"log"
	"net"
	"sync"

	"github.com/anser-rpc/anser"
)

var discard = log.New(io.Discard, "", 0)

// oneConn is a listener with one connection. Accept returns io.EOF when that has ended.
type oneConn struct {
	conn   *beganConn
	given  bool
	once   sync.Once
	closed chan struct{}
}

func newOneConn(in anser.Incoming) *oneConn {
	c := &beganConn{Conn: in.Conn, begin: in.Begin, over: make(chan struct{})}
	return &oneConn{conn: c, closed: make(chan struct{})}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	select {
	case <-l.conn.over:
		return nil, io.EOF
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// beganConn is a connection whose first bytes were read already.
type beganConn struct {
	net.Conn
	begin []byte
	once  sync.Once
	over  chan struct{} // closed by Close
}

func (c *beganConn) Read(p []byte) (int, error) {
	if len(c.begin) > 0 {
		n := copy(p, c.begin)
		c.begin = c.begin[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

func (c *beganConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.over) })
	return err
}

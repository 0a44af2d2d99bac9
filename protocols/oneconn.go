package protocols

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

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
	c.head.body = -1
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
	begin   []byte
	head    headWatch
	bounded atomic.Bool // it has a deadline for writing
	busy    atomic.Bool // a request has begun, and is not answered
	leaving atomic.Bool // the client should use another server
	once    sync.Once
	over    chan struct{} // closed by Close
}

func (c *beganConn) Read(p []byte) (int, error) {
	if len(c.begin) > 0 {
		n := copy(p, c.begin)
		c.begin = c.begin[n:]
		c.head.feed(p[:n])
		return n, nil
	}
	n, err := c.Conn.Read(p)
	c.head.feed(p[:n])
	return n, err
}

func (c *beganConn) SetWriteDeadline(by time.Time) error {
	c.bounded.Store(!by.IsZero())
	return c.Conn.SetWriteDeadline(by)
}

// next is called between two requests.
func (c *beganConn) next() {
	c.head.next()
	if c.bounded.Load() {
		c.SetWriteDeadline(time.Time{})
	}
}

// linger is how long an idle connection is kept when its client should use another server.
const linger = time.Second

// drain makes the next answer the last one of the connection. net/http would close a connection
// that is idle at once, and one that is not behind its answer, even if that did not say so and
// another request is on its way, whose client could not know that it did not run. Such a connection
// is kept for a while.
func (c *beganConn) drain() {
	c.leaving.Store(true)
	c.closeIdle()
}

func (c *beganConn) closeIdle() {
	time.AfterFunc(linger, func() {
		if !c.busy.Load() {
			c.Close()
		}
	})
}

// handler says in answers that they are the last ones, if so.
func (c *beganConn) handler(next http.Handler) http.Handler {
	last := func(w http.ResponseWriter) {
		if c.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last(w)
		next.ServeHTTP(w, r)
		last(w) // if it is not written yet
	})
}

// changed is called when net/http sees another state of the connection.
func (c *beganConn) changed(state http.ConnState) {
	c.busy.Store(state == http.StateActive || state == http.StateHijacked)
	if state == http.StateIdle {
		c.next()
		if c.leaving.Load() {
			c.closeIdle()
		}
	}
}

func (c *beganConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.over) })
	return err
}

// Package connqueue implements a net.Listener for connections that do not arrive by Accept of a
// socket.
package connqueue

import (
	"errors"
	"net"
	"strings"
	"sync"
)

// backlog is the number of connections that wait for Accept.
const backlog = 128

// Queue is a net.Listener for the connections passed to Put. All methods are safe for concurrent
// use. A nil Queue is closed, like that of a zero Handler.
type Queue struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}

	mu     sync.Mutex // guards closed, and sends on conns
	closed bool
}

// New returns an empty queue whose Addr is addr.
func New(addr net.Addr) *Queue {
	return &Queue{addr: addr, conns: make(chan net.Conn, backlog), done: make(chan struct{})}
}

// Put passes a connection to Accept. It reports false, and leaves the connection to the caller, if
// the queue is closed or too many connections wait.
func (q *Queue) Put(nc net.Conn) bool {
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	select {
	case q.conns <- nc:
		return true
	default:
		return false
	}
}

// Accept implements net.Listener.
func (q *Queue) Accept() (net.Conn, error) {
	if q == nil {
		return nil, errZero
	}
	select {
	case <-q.done:
	default:
		select {
		case nc := <-q.conns:
			return nc, nil
		case <-q.done:
		}
	}
	return nil, &net.OpError{Op: "accept", Net: q.addr.Network(), Addr: q.addr, Err: net.ErrClosed}
}

// Close implements net.Listener: it ends Accept and closes waiting connections. It may be called
// more than once.
func (q *Queue) Close() error {
	if q == nil {
		return errZero
	}
	q.mu.Lock()
	was := q.closed
	q.closed = true
	q.mu.Unlock()
	if was {
		return nil
	}
	close(q.done)
	for {
		select {
		case nc := <-q.conns:
			nc.Close()
		default:
			return nil
		}
	}
}

// Done returns a channel that is closed by Close.
func (q *Queue) Done() <-chan struct{} {
	if q == nil {
		return ended
	}
	return q.done
}

// Addr implements net.Listener.
func (q *Queue) Addr() net.Addr {
	if q == nil {
		return Addr{}
	}
	return q.addr
}

var (
	errZero = errors.New("the listener was not made by its constructor: use NewHandler")
	ended   = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
)

// Addr is the address of a transport: its network is the scheme.
type Addr struct{ Scheme, Address string }

// ParseAddr splits "scheme://address"; scheme is the default.
func ParseAddr(s, scheme string) Addr {
	if before, after, ok := strings.Cut(s, "://"); ok {
		return Addr{before, after}
	}
	return Addr{scheme, s}
}

// Network returns the scheme.
func (a Addr) Network() string { return a.Scheme }

// String returns the part after the scheme.
func (a Addr) String() string { return a.Address }

// Counter counts open resources. All methods are safe for concurrent use.
type Counter struct {
	mu       sync.Mutex // guards the fields below
	n        int
	watching bool
	closed   bool
	none     chan struct{}
}

// NewCounter returns a counter at 0.
func NewCounter() *Counter { return &Counter{none: make(chan struct{})} }

// Add adds n, which may be negative.
func (c *Counter) Add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
	c.checkLocked()
}

// Watch makes None close its channel when the counter is 0, now or later.
func (c *Counter) Watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching = true
	c.checkLocked()
}

// None returns the channel for Watch.
func (c *Counter) None() <-chan struct{} { return c.none }

func (c *Counter) checkLocked() {
	if c.watching && !c.closed && c.n == 0 {
		c.closed = true
		close(c.none)
	}
}

package ansertest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Faults describes the faults of a connection's writes. The zero value has none.
type Faults struct {
	// Bytewise writes every byte separately.
	Bytewise bool
	// CutAfter closes the connection after this number of bytes was written; the rest of the write
	// fails with ErrCut. 0 means never.
	CutAfter int64
	// StallAfter makes writes block after this number of bytes, as if the peer did not read, until
	// Resume, Close or the write deadline. 0 means never.
	StallAfter int64
	// Delay is the delay before each write.
	Delay time.Duration
}

// ErrCut is the error of a write beyond Faults.CutAfter, or after Cut.
var ErrCut = errors.New("ansertest: the connection was cut")

// FaultyConn is a connection with faults in its writes. All methods are safe for concurrent use,
// except that writes must not be concurrent with each other.
type FaultyConn struct {
	net.Conn
	faults Faults

	mu      sync.Mutex // guards the fields below
	written int64
	stalled bool
	resumed bool // Resume was called: StallAfter no longer applies
	cut     bool
	closed  bool
	writeBy time.Time
	changed chan struct{} // closed and replaced to wake a blocked write
}

// Faulty returns a connection with faults in its writes, over nc.
func Faulty(nc net.Conn, f Faults) *FaultyConn {
	return &FaultyConn{Conn: nc, faults: f, changed: make(chan struct{})}
}

// FaultyDial returns a dial function whose connections have faults in the client's writes.
// wrapped, which may be nil, is called with each connection before it is returned.
func FaultyDial(dial func(ctx context.Context, network, address string) (net.Conn, error), f Faults, wrapped func(*FaultyConn)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := Faulty(nc, f)
		if wrapped != nil {
			wrapped(c)
		}
		return c, nil
	}
}

// FaultyListener returns a listener whose connections have faults in the server's writes. wrapped,
// which may be nil, is called with each connection before Accept returns it.
func FaultyListener(l net.Listener, f Faults, wrapped func(*FaultyConn)) net.Listener {
	return &faultyListener{l, f, wrapped}
}

type faultyListener struct {
	net.Listener
	faults  Faults
	wrapped func(*FaultyConn)
}

func (l *faultyListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := Faulty(nc, l.faults)
	if l.wrapped != nil {
		l.wrapped(c)
	}
	return c, nil
}

// Write implements net.Conn.
func (c *FaultyConn) Write(b []byte) (n int, err error) {
	if c.faults.Delay > 0 {
		time.Sleep(c.faults.Delay)
	}
	for len(b) > 0 {
		part, err := c.await(len(b))
		if err != nil {
			return n, err
		}
		m, err := c.Conn.Write(b[:part])
		n += m
		b = b[m:]
		c.mu.Lock()
		c.written += int64(m)
		c.mu.Unlock()
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// await waits while the connection is stalled, and returns how many of n bytes may be written
// next.
func (c *FaultyConn) await(n int) (int, error) {
	for {
		c.mu.Lock()
		part, err := c.nextLocked(n)
		changed, by := c.changed, c.writeBy
		cutNow := errors.Is(err, ErrCut) && !c.cut
		if cutNow {
			c.cut = true
		}
		c.mu.Unlock()
		if cutNow {
			c.Conn.Close()
		}
		if err != nil || part > 0 {
			return part, err
		}
		waitChange(changed, by)
	}
}

// nextLocked returns how many of n bytes may be written now; 0 while stalled.
func (c *FaultyConn) nextLocked(n int) (int, error) {
	if c.faults.Bytewise {
		n = 1
	}
	if c.faults.CutAfter > 0 {
		n = int(min(int64(n), c.faults.CutAfter-c.written))
	}
	stallAt := c.faults.StallAfter > 0 && !c.resumed
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.cut || n <= 0:
		return 0, ErrCut
	case !c.writeBy.IsZero() && !time.Now().Before(c.writeBy):
		return 0, os.ErrDeadlineExceeded
	case c.stalled, stallAt && c.written >= c.faults.StallAfter:
		return 0, nil
	case stallAt:
		n = int(min(int64(n), c.faults.StallAfter-c.written))
	}
	return n, nil
}

func waitChange(changed chan struct{}, by time.Time) {
	if by.IsZero() {
		<-changed
		return
	}
	t := time.NewTimer(time.Until(by))
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	}
}

// Stall makes writes block from now on.
func (c *FaultyConn) Stall() { c.change(func() { c.stalled = true }) }

// Resume ends Stall, and the stall of Faults.StallAfter.
func (c *FaultyConn) Resume() { c.change(func() { c.stalled, c.resumed = false, true }) }

// Cut closes the connection for both sides; writes fail with ErrCut.
func (c *FaultyConn) Cut() {
	c.change(func() { c.cut = true })
	c.Conn.Close()
}

// Written returns the number of bytes written.
func (c *FaultyConn) Written() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written
}

// Close implements net.Conn.
func (c *FaultyConn) Close() error {
	c.change(func() { c.closed = true })
	return c.Conn.Close()
}

// CloseWrite closes the direction from this end, if the underlying connection supports it.
func (c *FaultyConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// SetDeadline implements net.Conn.
func (c *FaultyConn) SetDeadline(t time.Time) error {
	c.change(func() { c.writeBy = t })
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *FaultyConn) SetWriteDeadline(t time.Time) error {
	c.change(func() { c.writeBy = t })
	return c.Conn.SetWriteDeadline(t)
}

// change wakes blocked writes.
func (c *FaultyConn) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

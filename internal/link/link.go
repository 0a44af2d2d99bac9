package link

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/stranger"
)

// Limits bound the resources used by a peer.
type Limits struct {
	// MaxMessage is the maximum size of a received message in bytes.
	MaxMessage int
	// Stall is how long a message that has begun, or a write, may make no progress; 0 means no
	// limit. Like ReadTimeout, it requires a connection with deadlines.
	Stall time.Duration
	// ReadTimeout is the maximum time from the first to the last byte of a message; 0 means no
	// limit.
	ReadTimeout time.Duration
}

// DefaultLimits are the limits of a codec before SetLimits.
var DefaultLimits = Limits{MaxMessage: 4 << 20}

// Conn is one connection. A single goroutine reads; any number write.
type Conn struct {
	Out Outbox

	rwc    io.ReadWriteCloser
	early  []byte // arrived before the Conn was created
	limits Limits

	// Owned by the reader goroutine.
	begun    bool      // a part of a message has arrived
	started  time.Time // when the message began, if armed
	armed    bool      // a deadline is set
	progress int       // bytes since then
	first    []byte    // what a new connection has begun with, up to 4 bytes
	known    bool      // the peer does not speak HTTP

	lingering atomic.Bool
	once      sync.Once
	closeErr  error
}

// New returns a Conn over rwc, from which early was already read. A Conn over a nil rwc fails when
// it is used.
func New(rwc io.ReadWriteCloser, early []byte) *Conn {
	if rwc == nil {
		rwc = none{}
	}
	c := &Conn{rwc: rwc, early: early, known: len(early) > 0}
	c.Out.w, c.Out.broken = rwc, func() { c.Close() }
	c.SetLimits(DefaultLimits)
	return c
}

// none replaces a nil connection.
type none struct{}

var errNone = errors.New("the connection is nil")

func (none) Read([]byte) (int, error)  { return 0, errNone }
func (none) Write([]byte) (int, error) { return 0, errNone }
func (none) Close() error              { return nil }

// SetLimits changes the limits. It must not be called during a read or a write.
func (c *Conn) SetLimits(l Limits) {
	c.limits = l
	c.Out.stall = l.Stall
}

// SetMaxMessage changes the maximum size of a received message. It must be called by the reader
// goroutine.
func (c *Conn) SetMaxMessage(bytes int) { c.limits.MaxMessage = bytes }

// MaxMessage returns the maximum size of a received message.
func (c *Conn) MaxMessage() int { return c.limits.MaxMessage }

// Transport returns the underlying connection.
func (c *Conn) Transport() io.ReadWriteCloser { return c.rwc }

// progressEvery is how many bytes count as progress: a byte now and then does not.
const progressEvery = 16 << 10

// Read reads the data that has arrived. Within a message it waits for [Limits.Stall] at most, and
// no longer than [Limits.ReadTimeout] allows for the whole message.
func (c *Conn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		c.begun = true
		return n, nil
	}
	// Most messages arrive in one piece. A deadline has a cost, so it is set for the second piece
	// only.
	if c.begun && !c.lingering.Load() && (!c.armed || c.progress >= progressEvery) {
		c.setDeadline()
	}
	n, err := c.rwc.Read(p)
	c.progress += n
	if c.armed && errors.Is(err, os.ErrDeadlineExceeded) {
		err = c.late(err)
	}
	c.begun = c.begun || n > 0
	if !c.known && n > 0 {
		if err := c.look(p[:n]); err != nil {
			return 0, err
		}
	}
	return n, err
}

// ErrHTTP is the error of a peer that speaks HTTP.
var ErrHTTP = errors.New("it is a request of HTTP, and no call")

// ErrTold is in the chain of the error of a peer that was told what is wrong, and may not have
// read it yet.
var ErrTold = errors.New("the peer was told")

// look looks at the first bytes of the connection. No call of any codec begins as HTTP does.
func (c *Conn) look(p []byte) error {
	c.first = append(c.first, p[:min(len(p), 4-len(c.first))]...)
	is, may := stranger.BeginsHTTP(c.first)
	c.known = is || !may
	if is {
		return ErrHTTP
	}
	return nil
}

// setDeadline bounds the wait for the next piece of a message.
func (c *Conn) setDeadline() {
	if c.limits.Stall <= 0 && c.limits.ReadTimeout <= 0 {
		return
	}
	d, ok := c.rwc.(interface{ SetReadDeadline(time.Time) error })
	if !ok {
		return
	}
	now := time.Now()
	if !c.armed {
		c.started = now
	}
	at := now.Add(c.limits.Stall)
	if end := c.started.Add(c.limits.ReadTimeout); c.limits.ReadTimeout > 0 && (c.limits.Stall <= 0 || end.Before(at)) {
		at = end
	}
	d.SetReadDeadline(at)
	c.armed, c.progress = true, 0
}

// late adds the exceeded limit to the error of a read.
func (c *Conn) late(err error) error {
	if t := c.limits.ReadTimeout; t > 0 && time.Since(c.started) >= t {
		return fmt.Errorf("a message did not arrive completely within %v (ReadTimeout): %w", t, err)
	}
	return fmt.Errorf("a message made no progress for %v (Stall): %w", c.limits.Stall, err)
}

// Rest marks the end of a message; buffered is the number of bytes of the next one that have
// arrived.
func (c *Conn) Rest(buffered int) {
	c.begun = buffered > 0
	if c.armed {
		c.armed, c.progress = false, 0
		if d, ok := c.rwc.(interface{ SetReadDeadline(time.Time) error }); ok && !c.lingering.Load() {
			d.SetReadDeadline(time.Time{})
		}
	}
}

// Close closes the connection, which wakes all waiting goroutines. It may be called any number of
// times.
func (c *Conn) Close() error {
	c.once.Do(func() {
		c.closeErr = c.rwc.Close()
		c.Out.fail(net.ErrClosed)
	})
	return c.closeErr
}

// lingerBound is how long Linger waits for the peer.
const lingerBound = 200 * time.Millisecond

// Linger closes the direction to the peer, and gives it a moment to read the remaining data:
// closing a connection with unread input would destroy it. The reader goroutine must continue, and
// soon ends.
func (c *Conn) Linger() {
	c.lingering.Store(true)
	half, ok := c.rwc.(interface{ CloseWrite() error })
	d, ok2 := c.rwc.(interface{ SetReadDeadline(time.Time) error })
	if !ok || !ok2 || half.CloseWrite() != nil || d.SetReadDeadline(time.Now().Add(lingerBound)) != nil {
		c.Close()
	}
}

// Part lingers, and reads what the peer still sends in that moment, so that it can read what is
// written. The caller closes the connection after it.
func (c *Conn) Part() {
	c.Out.FlushAll()
	c.Linger()
	sink := make([]byte, 64<<10)
	for {
		if _, err := c.Read(sink); err != nil {
			return
		}
	}
}

// Linked is the additional interface of netrpc's own codecs.
type Linked interface {
	Link() *Conn
}

// Failer is a client's codec with structured errors. Failure is called after ReadResponseHeader
// has set an error, and may return nil.
type Failer interface {
	Failure() error
}

// FailureWriter is a server's codec with structured errors. It is called instead of WriteResponse
// for a call that failed with err.
type FailureWriter interface {
	WriteFailure(r *rpc.Response, err error) error
}

// Holder is a server's codec that calls hold, once, if a reply of n bytes must wait for the
// connection. Its error is returned, and the call is not answered then.
type Holder interface {
	WriteHeld(r *rpc.Response, reply any, hold func(n int) error) error
}

// Keeper is a server's codec that keeps replies until others are complete. Before the first request
// it gets functions that count n bytes, if there is room, and release them.
type Keeper interface {
	KeepWith(hold func(n int) bool, release func(n int))
}

// Sized is a server's codec that reports the size of the last request's body in bytes.
type Sized interface {
	RequestSize() int
}

// Sender is a client's codec that encodes a request without waiting for the connection.
type Sender interface {
	// Enqueue is WriteRequest without writing; wait is closed when the caller gives up. It returns
	// the end of the request in the stream.
	Enqueue(r *rpc.Request, body any, wait <-chan struct{}) (int64, error)
}

// Kind is the reason why a server did not run a call.
type Kind uint8

// The kinds.
const (
	NoMethod   Kind = iota + 1 // there is no such method
	BadRequest                 // the request could not be decoded
	Busy                       // the server is at a limit, or shutting down
	Unknown                    // the connection has not authenticated
	Denied                     // its identity may not call the method
)

// Refusal is the error of a call that the server did not run.
type Refusal struct {
	Kind Kind
	Text string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

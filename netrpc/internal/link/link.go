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
)

// Limits bound what a peer may cost.
type Limits struct {
	// MaxMessage is the largest message that is accepted, in bytes.
	MaxMessage int
	// Stall is how long a message that has begun, or a write, may make no progress; 0 means
	// forever. It needs a connection with deadlines, as ReadTimeout does.
	Stall time.Duration
	// ReadTimeout is the time from the first byte of a message to its last one; 0 means no bound.
	ReadTimeout time.Duration
}

// DefaultLimits are those of a codec that nobody has told others.
var DefaultLimits = Limits{MaxMessage: 4 << 20}

// Conn is one connection. A single goroutine reads; any number write.
type Conn struct {
	Out Outbox

	rwc    io.ReadWriteCloser
	early  []byte // arrived before the Conn was made
	limits Limits

	// Of the reading goroutine.
	begun    bool      // some of a message has arrived
	started  time.Time // when the message began, if armed
	armed    bool      // a deadline is set
	progress int       // bytes since then

	lingering atomic.Bool
	once      sync.Once
	closeErr  error
}

// New returns a Conn over rwc, of which early was already read. One that is nil fails when it is used.
func New(rwc io.ReadWriteCloser, early []byte) *Conn {
	if rwc == nil {
		rwc = none{}
	}
	c := &Conn{rwc: rwc, early: early}
	c.Out.w, c.Out.broken = rwc, func() { c.Close() }
	c.SetLimits(DefaultLimits)
	return c
}

// none takes the place of a connection that is nil.
type none struct{}

var errNone = errors.New("the connection is nil")

func (none) Read([]byte) (int, error)  { return 0, errNone }
func (none) Write([]byte) (int, error) { return 0, errNone }
func (none) Close() error              { return nil }

// SetLimits changes the limits. It must not be called while somebody reads or writes.
func (c *Conn) SetLimits(l Limits) {
	c.limits = l
	c.Out.stall = l.Stall
}

// SetMaxMessage changes the largest message that is accepted. It belongs to the reading goroutine.
func (c *Conn) SetMaxMessage(bytes int) { c.limits.MaxMessage = bytes }

// MaxMessage returns the largest message that is accepted.
func (c *Conn) MaxMessage() int { return c.limits.MaxMessage }

// Transport returns what the Conn was made of.
func (c *Conn) Transport() io.ReadWriteCloser { return c.rwc }

// progressEvery is how many bytes count as progress. A byte now and then does not.
const progressEvery = 16 << 10

// Read reads what has arrived. Within a message it waits for [Limits.Stall] at most, and no longer than
// [Limits.ReadTimeout] allows for the whole message.
func (c *Conn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		c.begun = true
		return n, nil
	}
	// Most messages come in one piece. A deadline costs something, so only the second piece has one.
	if c.begun && !c.lingering.Load() && (!c.armed || c.progress >= progressEvery) {
		c.setDeadline()
	}
	n, err := c.rwc.Read(p)
	c.progress += n
	if c.armed && errors.Is(err, os.ErrDeadlineExceeded) {
		err = c.late(err)
	}
	c.begun = c.begun || n > 0
	return n, err
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

// late says which limit has ended the wait for a message.
func (c *Conn) late(err error) error {
	if t := c.limits.ReadTimeout; t > 0 && time.Since(c.started) >= t {
		return fmt.Errorf("a message did not arrive completely within %v (ReadTimeout): %w", t, err)
	}
	return fmt.Errorf("a message made no progress for %v (Stall): %w", c.limits.Stall, err)
}

// Rest says that a message is complete, and how many bytes of the next are there.
func (c *Conn) Rest(buffered int) {
	c.begun = buffered > 0
	if c.armed {
		c.armed, c.progress = false, 0
		if d, ok := c.rwc.(interface{ SetReadDeadline(time.Time) error }); ok && !c.lingering.Load() {
			d.SetReadDeadline(time.Time{})
		}
	}
}

// Close closes the connection, which ends all that wait for it. It may be called any number of times.
func (c *Conn) Close() error {
	c.once.Do(func() {
		c.closeErr = c.rwc.Close()
		c.Out.fail(net.ErrClosed)
	})
	return c.closeErr
}

// lingerBound is how long Linger waits for the other side.
const lingerBound = 200 * time.Millisecond

// Linger tells the other side that nothing more comes, and gives it a moment to read what was
// written: closing a connection with unread bytes of the peer would take that away from it. The
// goroutine that reads must go on, and ends soon.
func (c *Conn) Linger() {
	c.lingering.Store(true)
	half, ok := c.rwc.(interface{ CloseWrite() error })
	d, ok2 := c.rwc.(interface{ SetReadDeadline(time.Time) error })
	if !ok || !ok2 || half.CloseWrite() != nil || d.SetReadDeadline(time.Now().Add(lingerBound)) != nil {
		c.Close()
	}
}

// Linked is what the codecs of netrpc have beyond those of others.
type Linked interface {
	Link() *Conn
}

// Failer is a client's codec that knows more of an error than its text. Failure is called after
// ReadResponseHeader has set one, and may return nil.
type Failer interface {
	Failure() error
}

// FailureWriter is a server's codec that can send more of an error than its text. It is called instead of
// WriteResponse for a call that failed with err.
type FailureWriter interface {
	WriteFailure(r *rpc.Response, err error) error
}

// Sized is a server's codec that knows how many bytes the body of the last request had.
type Sized interface {
	RequestSize() int
}

// Sender is a client's codec that encodes a request without waiting for the connection.
type Sender interface {
	// Enqueue is WriteRequest without writing; wait is done when the caller gives up. It
	// returns where the request ends in the stream.
	Enqueue(r *rpc.Request, body any, wait <-chan struct{}) (int64, error)
}

// Kind says why a server did not run a call.
type Kind uint8

// The kinds.
const (
	NoMethod   Kind = iota + 1 // there is no such method
	BadRequest                 // the request could not be decoded
	Busy                       // the server is at a limit, or shutting down
	Unknown                    // the connection has not authenticated itself
	Denied                     // its identity may not call the method
)

// Refusal is the error of a call that the server did not run.
type Refusal struct {
	Kind Kind
	Text string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

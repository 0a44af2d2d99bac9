package netrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/gobwire"
	"github.com/anser-rpc/anser/internal/link"
)

// Client calls a server over one connection, which any number of calls share. It does not
// reconnect: when its connection has ended, its calls fail with [ErrShutdown].
type Client struct {
	codec ClientCodec
	link  *link.Conn // nil with a codec of another package
	addr  string     // of the server, for errors

	sending sync.Mutex // guards WriteRequest of third-party codecs

	mu       sync.Mutex // guards the fields below
	seq      uint64
	pending  map[uint64]*pending
	closing  bool // Close was called
	shutdown bool // the connection has ended

	ended chan struct{} // closed when the reader goroutine has ended
}

// pending is a call that waits for its reply. The goroutine that removes it from the client's map
// ends it.
type pending struct {
	call *Call
	ctx  context.Context
	stop func() bool // stops watching ctx; nil if it is not watched
}

// NewClient returns a client over conn that uses gob. It starts a goroutine that reads until conn
// ends or Close is called. It does not change the deadlines of conn.
func NewClient(conn io.ReadWriteCloser) *Client { return newClient(newGobClientCodec(conn)) }

func newGobClientCodec(conn io.ReadWriteCloser) ClientCodec {
	return &gobClientCodec{gobStream: newGobStream(link.New(conn, nil))}
}

// NewClientWithCodec returns a client that uses codec and finally closes it. It starts a goroutine
// that reads until the codec fails. Methods of a third-party codec are called in the same way as
// by net/rpc.
func NewClientWithCodec(codec ClientCodec) *Client { return newClient(codec) }

func newClient(codec ClientCodec) *Client {
	if codec == nil {
		return new(Client) // its calls return the error
	}
	c := &Client{codec: codec, pending: make(map[uint64]*pending), ended: make(chan struct{})}
	if linked, ok := codec.(link.Linked); ok {
		c.link = linked.Link()
		if conn, ok := c.link.Transport().(net.Conn); ok && conn.RemoteAddr() != nil {
			c.addr = conn.RemoteAddr().String()
		}
	}
	go c.read()
	return c
}

// Call calls a method, waits for it, and returns its error: a [ServerError] if the server has
// returned one, [ErrShutdown] if the connection has ended, otherwise the cause of the failure. It
// waits as long as the server takes; see [Client.CallContext].
func (c *Client) Call(serviceMethod string, args, reply any) error {
	return (<-c.Go(serviceMethod, args, reply, make(chan *Call, 1)).Done).Error
}

// CallContext is Call with a context: when ctx is done first, it returns an *anser.Error, which
// matches context.Canceled or context.DeadlineExceeded and reports whether the request was sent.
// The server is not notified, which net/rpc's protocol does not support, and a later reply is
// discarded. reply is not modified after CallContext has returned. With a third-party codec,
// CallContext also waits for a WriteRequest or ReadResponseBody of its call in progress.
func (c *Client) CallContext(ctx context.Context, serviceMethod string, args, reply any) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	call := &Call{ServiceMethod: serviceMethod, Args: args, Reply: reply, Done: make(chan *Call, 1)}
	seq := c.send(&pending{call: call, ctx: ctx})
	select {
	case <-call.Done:
	case <-ctx.Done():
		c.abandon(seq)
		<-call.Done // immediately, or the reply is being decoded
	}
	return call.Error
}

// Go starts a call and returns when it has been sent. When the call has completed, the result is
// sent on done, if it has capacity; nil means a new channel. Like net/rpc, Go panics if the
// channel is unbuffered, a mistake by which the result could be lost. The value of args must not
// be modified, and reply must not be accessed, until the call has completed.
func (c *Client) Go(serviceMethod string, args, reply any, done chan *Call) *Call {
	return c.GoContext(context.Background(), serviceMethod, args, reply, done)
}

// GoContext is Go with a context: when ctx is done first, the call completes with the error
// described at [Client.CallContext].
func (c *Client) GoContext(ctx context.Context, serviceMethod string, args, reply any, done chan *Call) *Call {
	if done == nil {
		done = make(chan *Call, 10)
	} else if cap(done) == 0 {
		panic("rpc: done channel is unbuffered: make it with room for the calls that end on it")
	}
	call := &Call{ServiceMethod: serviceMethod, Args: args, Reply: reply, Done: done}
	p := &pending{call: call, ctx: ctx}
	if err := c.usable(ctx); err != nil {
		p.end(err)
		return call
	}
	if ctx.Done() == nil {
		c.send(p)
		return call
	}
	started := make(chan struct{})
	var seq uint64
	p.stop = context.AfterFunc(ctx, func() {
		<-started
		c.abandon(seq)
	})
	seq = c.send(p)
	close(started)
	return call
}

// Close closes the connection; calls that wait for a reply end with ErrShutdown. A second Close
// returns ErrShutdown.
func (c *Client) Close() error {
	if err := c.usable(context.Background()); err != nil {
		return err
	}
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return ErrShutdown
	}
	c.closing = true
	c.mu.Unlock()
	err := c.codec.Close()
	if c.link != nil {
		// Closing a net.Conn ends its Read; for other connections that is not guaranteed.
		if _, ok := c.link.Transport().(net.Conn); ok {
			<-c.ended
		}
	}
	return err
}

// send registers the call and sends its request. A failure ends the call.
func (c *Client) send(p *pending) (seq uint64) {
	if err := context.Cause(p.ctx); err != nil {
		p.end(c.gaveUp(p, anser.NotSent))
		return noSeq
	}
	if c.link == nil {
		c.sending.Lock()
		defer c.sending.Unlock()
	}
	c.mu.Lock()
	if c.shutdown || c.closing {
		c.mu.Unlock()
		p.end(ErrShutdown)
		return noSeq
	}
	seq = c.seq
	c.seq++
	c.pending[seq] = p
	c.mu.Unlock()
	request := &Request{ServiceMethod: p.call.ServiceMethod, Seq: seq}
	err := gobwire.Guard(func() error { return c.write(request, p) })
	if err == nil {
		return seq
	}
	if p := c.take(seq); p != nil {
		if errors.Is(err, link.ErrGaveUp) {
			err = c.gaveUp(p, anser.NotSent)
		} else if panicked, ok := errors.AsType[*gobwire.PanicError](err); ok {
			err = fmt.Errorf("rpc: encoding the request of %s panicked: %v", p.call.ServiceMethod, panicked.Value)
		}
		p.end(err)
	}
	return seq
}

// noSeq is the sequence number of no call.
const noSeq = ^uint64(0)

// write writes a request. If the call has a context, it does not wait for the connection to accept
// it.
func (c *Client) write(r *Request, p *pending) error {
	sender, ok := c.codec.(link.Sender)
	if !ok || p.ctx.Done() == nil {
		return c.codec.WriteRequest(r, p.call.Args)
	}
	if _, err := sender.Enqueue(r, p.call.Args, p.ctx.Done()); err != nil {
		return err
	}
	c.link.Out.FlushLater()
	return nil
}

// take removes a call, which the caller must then end; nil if another goroutine has removed it.
func (c *Client) take(seq uint64) *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[seq]
	delete(c.pending, seq)
	return p
}

// abandon ends a call whose context is done.
func (c *Client) abandon(seq uint64) {
	if p := c.take(seq); p != nil {
		p.end(c.gaveUp(p, anser.OutcomeUnknown))
	}
}

// gaveUp returns the error of a call whose context is done.
func (c *Client) gaveUp(p *pending, outcome anser.Outcome) error {
	code, cause := anser.Canceled, context.Cause(p.ctx)
	if errors.Is(p.ctx.Err(), context.DeadlineExceeded) {
		code = anser.DeadlineExceeded
	}
	e := anser.Errorf(code, "the caller gave up: %w", cause)
	e.Outcome, e.Method, e.Address, e.Phase = outcome, p.call.ServiceMethod, c.addr, anser.PhaseWait
	if outcome == anser.NotSent {
		e.Phase = anser.PhaseWrite
	}
	return e
}

// end ends the call.
func (p *pending) end(err error) {
	if p.stop != nil {
		p.stop()
	}
	p.call.Error = err
	select {
	case p.call.Done <- p.call:
	default:
		// The caller has chosen a channel without enough capacity for all its calls.
	}
}

// read reads responses until the connection ends.
func (c *Client) read() {
	defer close(c.ended)
	var err error
	for err == nil {
		var r Response
		if err = gobwire.Guard(func() error { return c.codec.ReadResponseHeader(&r) }); err == nil {
			err = c.deliver(&r)
		}
	}
	if c.link != nil {
		// If writing has failed, that is the cause of the failed read.
		if e := c.link.Out.Err(); e != nil && !errors.Is(e, net.ErrClosed) {
			err = e
		}
	}
	c.fail(err)
	if c.link != nil {
		c.codec.Close()
	}
}

// deliver reads the body of a response and ends its call. An error means that no more can be read
// from the connection.
func (c *Client) deliver(r *Response) error {
	p := c.take(r.Seq)
	var body any
	if p != nil && r.Error == "" {
		body = p.call.Reply
	}
	err := gobwire.Guard(func() error { return c.codec.ReadResponseBody(body) })
	switch {
	case p == nil:
		// The caller has given up, or its request could not be written completely.
	case r.Error != "":
		p.end(c.failure(r))
	case err != nil:
		p.end(c.undecodable(p, err))
	default:
		p.end(nil)
		return nil
	}
	if c.link != nil {
		// This package's codecs continue after an invalid body, or fail on the next header.
		return nil
	}
	if err != nil && (p == nil || r.Error != "") {
		return fmt.Errorf("reading error body: %w", err)
	}
	return err
}

// failure returns the error in the server's response.
func (c *Client) failure(r *Response) error {
	if f, ok := c.codec.(link.Failer); ok {
		if err := f.Failure(); err != nil {
			return err
		}
	}
	return ServerError(r.Error)
}

// undecodable returns the error of a call whose reply could not be decoded.
func (c *Client) undecodable(p *pending, err error) error {
	if large, ok := errors.AsType[*gobwire.TooLargeError](err); ok {
		return fmt.Errorf("rpc: the reply of %s has %d bytes, which is over the limit of %d: ask for less, or raise Dialer.MaxMessage: %w",
			p.call.ServiceMethod, large.Size, large.Limit, err)
	}
	if panicked, ok := errors.AsType[*gobwire.PanicError](err); ok {
		return fmt.Errorf("rpc: decoding the reply of %s panicked: %v", p.call.ServiceMethod, panicked.Value)
	}
	return fmt.Errorf("reading body %w", err)
}

// fail ends all calls because the connection has ended.
func (c *Client) fail(err error) {
	c.mu.Lock()
	c.shutdown = true
	if c.closing {
		err = ErrShutdown
	} else if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	left := c.pending
	c.pending = make(map[uint64]*pending)
	c.mu.Unlock()
	for _, p := range left {
		p.end(err)
	}
}

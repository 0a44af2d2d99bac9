package netrpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/gobwire"
	"github.com/anser-rpc/anser/netrpc/internal/link"
)

// session is one connection of a server.
type session struct {
	server *Server
	codec  ServerCodec
	link   *link.Conn // nil with a codec of another package
	single bool       // serves one request only

	ctx     context.Context // of the connection; those of calls are derived from it
	cancel  context.CancelFunc
	peer    anser.Peer
	request *http.Request  // by which the connection came, or nil
	workers sync.WaitGroup // goroutines that run calls
	sending sync.Mutex     // guards WriteResponse of a codec of another package

	mu       sync.Mutex // guards what follows
	known    bool       // has authenticated itself
	identity any
	calls    int     // that run or wait
	active   int     // goroutines that run them
	waiting  []*call // for one of those
	draining bool
	quiet    chan struct{} // closed when draining is set and calls is 0; nil until then
}

// origin is what is known of a connection before it is served.
type origin struct {
	ctx      context.Context // nil: the background
	request  *http.Request
	known    bool
	identity any
}

// call is one request on its way.
type call struct {
	request  Request
	entry    *entry
	argument any
	identity any // with which the call was admitted, whatever login comes later
}

// serveSession serves a connection until it is over.
func (s *Server) serveSession(c *session, from origin) {
	c.request, c.known, c.identity = from.request, from.known, from.identity
	if from.ctx != nil {
		c.ctx = from.ctx
	}
	if err := s.enter(c); err != nil {
		s.log().Debug("rpc: connection refused", "peer", c.peer.Addr, "err", err)
		c.cancel()
		c.codec.Close()
		return
	}
	defer s.leave(c)
	err := c.handshake()
	if err == nil {
		err = c.serve()
	}
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF && !errors.Is(err, net.ErrClosed) {
		s.stats.broken.Add(1)
		s.log().Debug("rpc: connection broken", "peer", c.peer.Addr, "err", err)
	}
	if !s.HalfClose || err != io.EOF {
		c.cancel()
	}
	c.workers.Wait()
	c.codec.Close()
}

// serve reads requests and starts their calls, until reading fails.
func (c *session) serve() error {
	for {
		cl, refusal, err := c.read()
		switch {
		case err != nil:
			return err
		case refusal != nil:
			c.refuse(cl, refusal)
			if refusal.Kind == link.Unknown {
				c.flush()
				return refusal
			}
		case cl.entry == nil:
			c.reply(cl, true) // of a login
		default:
			c.start(cl)
		}
	}
}

// start runs a call, now or when another one has ended. It does not wait itself: whoever reads must go
// on, since nothing else finds out that the connection is lost, and calls that wait for the end of their
// context would keep their places for ever.
func (c *session) start(cl *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active >= or(c.server.MaxPerConn, defaultMaxPerConn) {
		c.waiting = append(c.waiting, cl)
		return
	}
	c.active++
	c.workers.Go(func() { c.work(cl) })
}

// work runs a call, and then sees to the one that has waited longest. That gets a goroutine of its own,
// since a method may end the one that it runs on.
func (c *session) work(cl *call) {
	defer func() {
		if next := c.nextCall(); next != nil {
			c.workers.Go(func() { c.work(next) })
		}
	}()
	c.run(cl)
}

// nextCall returns the call that has waited longest, or gives up a place.
func (c *session) nextCall() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		// Nobody waits for these replies any more.
		c.server.stats.refused.Add(int64(len(c.waiting)))
		for range c.waiting {
			c.endLocked()
		}
		c.waiting = nil
	}
	if len(c.waiting) == 0 {
		c.waiting = nil
		c.active--
		return nil
	}
	cl := c.waiting[0]
	c.waiting[0] = nil
	c.waiting = c.waiting[1:]
	return cl
}

// serveOne serves one request on the calling goroutine.
func (c *session) serveOne() error {
	if c.server.Authenticate != nil {
		c.authenticate(&Credentials{Peer: c.peer})
	}
	cl, refusal, err := c.read()
	if err != nil {
		return err
	}
	if refusal != nil {
		c.refuse(cl, refusal)
		c.flush()
		return refusal
	}
	if cl.entry == nil {
		c.reply(cl, true)
	} else {
		// A goroutine of its own, since a method may end the one that it runs on.
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(cl)
		}()
		<-done
	}
	c.flush()
	return nil
}

// read reads a request. A login is over then, and has no entry. The error is that of a connection on which
// nothing more can be read.
func (c *session) read() (*call, *link.Refusal, error) {
	cl := new(call)
	err := gobwire.Guard(func() error { return c.codec.ReadRequestHeader(&cl.request) })
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("rpc: server cannot decode request: %w", err)
	}
	if c.server.Authenticate != nil && cl.request.ServiceMethod == LoginMethod {
		return cl, c.login(), nil
	}
	if refusal := c.admit(cl); refusal != nil {
		// A body that cannot be left out is the business of the next header.
		gobwire.Guard(func() error { return c.codec.ReadRequestBody(nil) })
		return cl, refusal, nil
	}
	cl.argument = cl.entry.method.newArgument()
	if err := c.readBody(cl, cl.argument); err != nil {
		c.end()
		return cl, err, nil
	}
	return cl, nil, nil
}

func (c *session) readBody(cl *call, body any) *link.Refusal {
	err := gobwire.Guard(func() error { return c.codec.ReadRequestBody(body) })
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) > maxQuote {
		// encoding/json quotes what it does not like, whatever its size.
		text = strings.ToValidUTF8(text[:maxQuote], "") + "…"
	}
	if large, ok := errors.AsType[*gobwire.TooLargeError](err); ok {
		text = fmt.Sprintf("rpc: the request of %d bytes is over the server's limit of %d: send less, or raise Server.MaxMessage there", large.Size, large.Limit)
	} else if panicked, ok := errors.AsType[*gobwire.PanicError](err); ok {
		text = c.panicked("decoding the request panicked", cl, panicked.Value, panicked.Stack)
	}
	return &link.Refusal{Kind: link.BadRequest, Text: text}
}

// maxQuote is how much of an error about a request its caller is told.
const maxQuote = 1 << 10

// admit decides whether a request is to run, before its body is decoded.
func (c *session) admit(cl *call) *link.Refusal {
	s := c.server
	if s.Authenticate != nil {
		var known bool
		if cl.identity, known = c.who(); !known {
			return errUnknown
		}
	}
	e, refusal := s.find(cl.request.ServiceMethod)
	if refusal != nil {
		return refusal
	}
	if limit := or(s.MaxInFlight, defaultMaxInFlight); s.inFlight.Add(1) > int64(limit) {
		s.inFlight.Add(-1)
		return &link.Refusal{Kind: link.Busy, Text: fmt.Sprintf("rpc: the server has %d calls already, which is its limit (Server.MaxInFlight): try again later", limit)}
	}
	if !c.begin() {
		s.inFlight.Add(-1)
		return &link.Refusal{Kind: link.Busy, Text: "rpc: the server is shutting down: call another one"}
	}
	cl.entry = e
	return nil
}

// begin counts a call, unless the session is draining.
func (c *session) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return false
	}
	c.calls++
	return true
}

// end takes back what admit has counted.
func (c *session) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked()
}

func (c *session) endLocked() {
	c.server.inFlight.Add(-1)
	if c.calls--; c.calls == 0 && c.draining {
		close(c.quiet)
	}
}

var errGone = errors.New("rpc: the method ended its goroutine without a reply")

// run runs the method and sends its reply. Nothing that the method does reaches beyond this call.
func (c *session) run(cl *call) {
	s, m := c.server, cl.entry.method
	ctx := c.ctx
	if m.context || len(s.Interceptors) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		if s.Authenticate != nil {
			ctx = context.WithValue(ctx, identityKey{}, cl.identity)
		}
	}
	m.calls.Add(1)
	if cl.entry.alias {
		cl.entry.uses.Add(1)
	}
	var reply any
	err := errGone // unless the method returns: runtime.Goexit comes by here too
	defer func() {
		if p := recover(); p != nil {
			err = errors.New(c.panicked("the method panicked", cl, p, debug.Stack()))
		}
		if err != nil {
			m.failed.Add(1)
			c.fail(cl, err)
		} else {
			c.reply(cl, reply)
		}
		c.end()
	}()
	reply, err = s.run(ctx, m, cl.argument)
}

// panicked logs a panic and returns what the caller is told of it.
func (c *session) panicked(what string, cl *call, p any, stack []byte) string {
	c.server.stats.panics.Add(1)
	id := rand.Text()[:10]
	c.server.log().Error("rpc: "+what, "method", cl.request.ServiceMethod, "id", id, "panic", fmt.Sprint(p), "stack", string(stack))
	return fmt.Sprintf("rpc: %s; the server's log has the details under id %s", what, id)
}

// refuse answers a call that did not run.
func (c *session) refuse(cl *call, refusal *link.Refusal) {
	c.server.stats.refused.Add(1)
	c.fail(cl, refusal)
}

// invalid takes the place of the reply of a call that failed, as in net/rpc.
var invalid = struct{}{}

// fail answers a call with an error.
func (c *session) fail(cl *call, err error) {
	r := &Response{ServiceMethod: cl.request.ServiceMethod, Seq: cl.request.Seq}
	if panicked := gobwire.Guard(func() error { r.Error = err.Error(); return nil }); panicked != nil {
		r.Error = "rpc: the method failed, and its error panicked"
	}
	if r.Error == "" {
		// On the wire an empty text is no error.
		r.Error = "rpc: the method failed without saying why"
	}
	c.write(cl, func() error {
		if w, ok := c.codec.(link.FailureWriter); ok {
			return w.WriteFailure(r, err)
		}
		return c.codec.WriteResponse(r, invalid)
	})
}

// reply answers a call.
func (c *session) reply(cl *call, reply any) {
	r := &Response{ServiceMethod: cl.request.ServiceMethod, Seq: cl.request.Seq}
	if !c.write(cl, func() error { return c.codec.WriteResponse(r, reply) }) && cl.entry != nil {
		cl.entry.method.failed.Add(1)
	}
}

// write lets the codec write. Our own codecs write from many goroutines at once; and what they
// cannot encode they answer with an error.
func (c *session) write(cl *call, f func() error) bool {
	if c.link == nil {
		c.sending.Lock()
		defer c.sending.Unlock()
	}
	err := gobwire.Guard(f)
	if err == nil {
		return true
	}
	if panicked, ok := errors.AsType[*gobwire.PanicError](err); ok {
		c.panicked("encoding the reply panicked", cl, panicked.Value, panicked.Stack)
		if c.link == nil {
			c.codec.Close() // what it has written nobody knows
		}
	} else {
		c.server.log().Debug("rpc: writing response", "method", cl.request.ServiceMethod, "err", err)
	}
	return false
}

// flush waits until everything that was answered is written.
func (c *session) flush() {
	if c.link != nil {
		c.link.Out.FlushAll()
	}
}

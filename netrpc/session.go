package netrpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

	ctx     context.Context // of the connection; the values of the contexts of calls are its own
	cancel  context.CancelFunc
	peer    anser.Peer
	request *http.Request  // by which the connection came, or nil
	calls   sync.WaitGroup // that were admitted and have no answer yet
	sending sync.Mutex     // guards WriteResponse of a codec of another package

	mu       sync.Mutex          // guards what follows
	conn     *anser.ProtocolConn // at the server that runs the calls; nil until the handshake is over, set once
	known    bool                // has authenticated itself
	identity any
	active   int     // calls that run
	waiting  []*call // for their turn
	draining bool    // before conn is set
	lost     bool    // the replies do not arrive any more
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
	entry    *entry // nil: the method was added to Server.Anser
	call     *anser.ProtocolCall
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
		c.lose(err)
	}
	c.calls.Wait()
	c.lose(err)
	c.codec.Close()
}

// lose ends the contexts of the calls, whose replies nobody gets any more.
func (c *session) lose(err error) {
	c.cancel()
	c.mu.Lock()
	c.lost = true
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		conn.End(err)
	}
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
		case cl.call == nil:
			c.reply(cl, true) // of a login
		default:
			c.start(cl)
		}
	}
}

// start runs a call, now or when another one has ended. It does not wait itself: the reader goroutine must go
// on, since nothing else finds out that the connection is lost, and calls that wait for the end of their
// context would keep their places for ever.
func (c *session) start(cl *call) {
	c.mu.Lock()
	if c.active >= or(c.server.MaxPerConn, defaultMaxPerConn) {
		c.waiting = append(c.waiting, cl)
		c.mu.Unlock()
		return
	}
	c.active++
	c.mu.Unlock()
	c.run(cl)
}

// next runs the call that has waited longest, after another one has ended.
func (c *session) next() {
	c.mu.Lock()
	if c.lost {
		gone := c.waiting
		c.waiting = nil
		c.active--
		c.mu.Unlock()
		for _, cl := range gone {
			c.drop(cl, errGone)
		}
		return
	}
	if len(c.waiting) == 0 {
		c.waiting = nil
		c.active--
		c.mu.Unlock()
		return
	}
	cl := c.waiting[0]
	c.waiting[0] = nil
	c.waiting = c.waiting[1:]
	c.mu.Unlock()
	c.run(cl)
}

var errGone = anser.Refuse(anser.Canceled, "the connection was lost before the call could run")

// drop ends a call that was admitted and does not run.
func (c *session) drop(cl *call, why *anser.Error) {
	cl.call.Refuse(why)
	c.server.stats.refused.Add(1)
	c.server.inFlight.Add(-1)
	c.calls.Done()
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
	if cl.call == nil {
		c.reply(cl, true)
	} else {
		c.start(cl)
		c.calls.Wait()
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
	if c.hasLogin() && cl.request.ServiceMethod == LoginMethod {
		return cl, c.login(), nil
	}
	if refusal := c.admit(cl); refusal != nil {
		// A body that cannot be left out is the business of the next header.
		gobwire.Guard(func() error { return c.codec.ReadRequestBody(nil) })
		return cl, refusal, nil
	}
	cl.argument = cl.call.NewRequest()
	if refusal := c.readBody(cl, cl.argument); refusal != nil {
		c.drop(cl, anser.Refuse(anser.InvalidArgument, "%s", refusal.Text))
		c.server.stats.refused.Add(-1) // refuse counts it
		return cl, refusal, nil
	}
	if sized, ok := c.codec.(link.Sized); ok {
		if e := cl.call.Received(sized.RequestSize()); e != nil {
			c.drop(cl, e)
			c.server.stats.refused.Add(-1)
			return cl, c.server.refusal(cl.request.ServiceMethod, e), nil
		}
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
	name := cl.request.ServiceMethod
	e := s.table().methods[name]
	if e != nil {
		name = e.method.name
	}
	r := anser.ProtocolRequest{Method: name, Priority: anser.Normal, Values: c.ctx}
	if s.Authenticate != nil {
		r.Values = context.WithValue(c.ctx, identityKey{}, cl.identity)
	}
	s.inFlight.Add(1)
	admitted, refused := c.conn.Admit(&r)
	if refused != nil {
		s.inFlight.Add(-1)
		return s.refusal(cl.request.ServiceMethod, refused)
	}
	c.calls.Add(1)
	cl.entry, cl.call = e, admitted
	return nil
}

// run has the server run the method, and sends its reply.
func (c *session) run(cl *call) {
	if cl.entry != nil && cl.entry.alias {
		cl.entry.uses.Add(1)
	}
	cl.call.Run(cl.argument, func(r anser.ProtocolReply) error {
		var err error
		if r.Err == nil {
			err = c.reply(cl, r.Message)
		} else {
			c.fail(cl, r.Err)
		}
		c.server.inFlight.Add(-1)
		c.next()
		c.calls.Done()
		return err
	})
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
	r := &Response{ServiceMethod: cl.request.ServiceMethod, Seq: cl.request.Seq, Error: failure(err)}
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

// failure returns the text of an error. That of a method goes to the caller as it is.
func failure(err error) string {
	e, ok := err.(*anser.Error)
	if ok && errors.Unwrap(e) == nil {
		return "rpc: " + e.Message
	}
	return err.Error()
}

// reply answers a call.
func (c *session) reply(cl *call, reply any) error {
	r := &Response{ServiceMethod: cl.request.ServiceMethod, Seq: cl.request.Seq}
	return c.write(cl, func() error { return c.codec.WriteResponse(r, reply) })
}

// write lets the codec write. Our own codecs write from many goroutines at once; and what they
// cannot encode they answer with an error.
func (c *session) write(cl *call, f func() error) error {
	if c.link == nil {
		c.sending.Lock()
		defer c.sending.Unlock()
	}
	err := gobwire.Guard(f)
	if err == nil {
		return nil
	}
	if panicked, ok := errors.AsType[*gobwire.PanicError](err); ok {
		c.panicked("encoding the reply panicked", cl, panicked.Value, panicked.Stack)
		if c.link == nil {
			c.codec.Close() // what it has written nobody knows
		}
	} else {
		c.server.log().Debug("rpc: writing response", "method", cl.request.ServiceMethod, "err", err)
	}
	return err
}

// flush waits until everything that was answered is written.
func (c *session) flush() {
	if c.link != nil {
		c.link.Out.FlushAll()
	}
}

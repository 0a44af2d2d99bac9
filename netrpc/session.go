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
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/gobwire"
	"github.com/anser-rpc/anser/internal/link"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/stranger"
)

// session is one connection of a server.
type session struct {
	server *Server
	codec  ServerCodec
	link   *link.Conn // nil with a third-party codec
	single bool       // serves only one request

	ctx     context.Context // of the connection; the calls' contexts hold its values
	cancel  context.CancelFunc
	peer    anser.Peer
	request *http.Request  // CONNECT request of the connection, or nil
	place   place          // among the connections in their handshake; owned by the reader goroutine
	calls   sync.WaitGroup // admitted and not answered yet
	sending sync.Mutex     // guards WriteResponse of a third-party codec

	mu       sync.Mutex          // guards the fields below
	conn     *anser.ProtocolConn // at the server that runs the calls; nil until the end of the handshake, set once
	known    bool                // it has authenticated
	identity any
	active   int     // running calls
	waiting  []*call // calls that wait for their turn
	draining bool    // drain was called; open checks it
	lost     bool    // replies no longer arrive
}

// origin is the data about a connection before it is served.
type origin struct {
	ctx      context.Context // nil means the background context
	request  *http.Request
	known    bool
	identity any
	place    place
}

// call is one request in progress.
type call struct {
	request  Request
	entry    *entry // nil: the method is registered at Server.Anser
	call     *anser.ProtocolCall
	argument any
	identity any // at the time of admission, whatever login follows
}

// serveSession serves a connection until it ends.
func (s *Server) serveSession(c *session, from origin) {
	c.request, c.known, c.identity, c.place = from.request, from.known, from.identity, from.place
	defer c.place.leave()
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
	if errors.Is(err, link.ErrHTTP) {
		c.answerHTTP()
	}
	if c.place.lost() {
		err = fmt.Errorf("%w (Server.MaxHandshakes: %d)", errTurnedOut, s.maxHandshakes())
		s.log().Debug("rpc: connection refused", "peer", c.peer.Addr, "err", err)
	} else if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF && !errors.Is(err, net.ErrClosed) {
		s.stats.broken.Add(1)
		s.log().Debug("rpc: connection broken", "peer", c.peer.Addr, "err", err)
	}
	if !s.HalfClose || err != io.EOF {
		c.lose(err)
	}
	c.calls.Wait()
	c.lose(err)
	if errors.Is(err, link.ErrTold) {
		c.link.Part()
	}
	c.codec.Close()
}

// answerHTTP tells an HTTP client what it has reached.
func (c *session) answerHTTP() {
	s := c.server
	if n := s.httpSeen.Note(mono.Now()); n > 0 {
		s.log().Warn("rpc: a request of HTTP reached this port, which speaks net/rpc: see Debug for each of them", "peer", c.peer.Addr, "requests", n)
	}
	if d, ok := c.link.Transport().(interface{ SetWriteDeadline(time.Time) error }); ok {
		d.SetWriteDeadline(time.Now().Add(time.Second))
	}
	stranger.Answer(c.link.Transport(), httpText)
	c.link.Linger()
	var sink [4 << 10]byte
	for range 16 { // a client whose bytes are not read may never see the answer
		if _, err := c.link.Read(sink[:]); err != nil {
			return
		}
	}
}

const httpText = "This is a server of net/rpc, which does not speak HTTP on this port.\n" +
	"Call it with a client of net/rpc or JSON-RPC over TCP. For HTTP, gRPC and JSON on one port,\n" +
	"give a server of package anser the option protocols.All().\n"

// lose ends the contexts of the calls, whose replies can no longer be delivered.
func (c *session) lose(err error) {
	c.cancel()
	c.mu.Lock()
	c.lost = true
	conn, gone := c.conn, c.waiting
	c.waiting = nil
	c.mu.Unlock()
	// At once: the calls that run may ignore the ends of their contexts, and these have places in
	// the limits.
	for _, cl := range gone {
		c.server.stats.refused.Add(1)
		c.drop(cl, errGone)
	}
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

// start runs a call, now or when another one has ended. It must not wait itself: only the reader
// goroutine can notice that the connection is lost, and calls that wait for the end of their
// context would otherwise keep their places forever.
func (c *session) start(cl *call) {
	c.mu.Lock()
	if c.lost {
		c.mu.Unlock()
		c.server.stats.refused.Add(1)
		c.drop(cl, errGone)
		return
	}
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

// drop ends a call that was admitted and does not run. The caller counts the refusal.
func (c *session) drop(cl *call, why *anser.Error) {
	cl.call.Refuse(why)
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

// read reads a request. A login is complete when it returns, and has no entry. An error means that
// no more can be read from the connection.
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
		// If the body cannot be skipped, reading the next header fails.
		gobwire.Guard(func() error { return c.codec.ReadRequestBody(nil) })
		return cl, refusal, nil
	}
	cl.argument = cl.call.NewRequest()
	if refusal := c.notForwarded(cl); refusal != nil {
		c.drop(cl, anser.Refuse(anser.Unimplemented, "%s", refusal.Text)) // refuse counts it
		gobwire.Guard(func() error { return c.codec.ReadRequestBody(nil) })
		return cl, refusal, nil
	}
	if refusal := c.readBody(cl, cl.argument); refusal != nil {
		c.drop(cl, anser.Refuse(anser.InvalidArgument, "%s", refusal.Text)) // refuse counts it
		return cl, refusal, nil
	}
	if sized, ok := c.codec.(link.Sized); ok {
		if e := cl.call.Received(sized.RequestSize()); e != nil {
			c.drop(cl, e)
			return cl, c.server.refusal(cl.request.ServiceMethod, e), nil
		}
	}
	return cl, nil, nil
}

// notForwarded refuses a call whose message must be forwarded as it is encoded, if that is in gob:
// earlier messages of the connection define its types.
func (c *session) notForwarded(cl *call) *link.Refusal {
	_, encoded := cl.argument.(*codec.Encoded)
	if _, isGob := c.codec.(*gobServerCodec); !encoded || !isGob {
		return nil
	}
	return &link.Refusal{Kind: link.NoMethod, Text: fmt.Sprintf("rpc: method %q is forwarded to another server, which is not possible over net/rpc with gob: "+
		"call it over JSON-RPC or another protocol, or call the other server itself", cl.request.ServiceMethod)}
}

func (c *session) readBody(cl *call, body any) *link.Refusal {
	err := gobwire.Guard(func() error { return c.codec.ReadRequestBody(body) })
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) > maxQuote {
		// encoding/json quotes invalid input, whatever its size.
		text = strings.ToValidUTF8(text[:maxQuote], "") + "…"
	}
	if large, ok := errors.AsType[*gobwire.TooLargeError](err); ok {
		text = fmt.Sprintf("rpc: the request of %d bytes is over the server's limit of %d: send less, or raise Server.MaxMessage there", large.Size, large.Limit)
	} else if panicked, ok := errors.AsType[*gobwire.PanicError](err); ok {
		text = c.panicked("decoding the request panicked", cl, panicked.Value, panicked.Stack)
	}
	return &link.Refusal{Kind: link.BadRequest, Text: text}
}

// maxQuote is the maximum length of an error about a request, in the caller's view.
const maxQuote = 1 << 10

// admit decides whether a request may run, before its body is decoded.
func (c *session) admit(cl *call) *link.Refusal {
	s := c.server
	if s.Authenticate != nil {
		var known bool
		if cl.identity, known = c.identified(); !known {
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

// run makes the server run the method, and sends its reply.
func (c *session) run(cl *call) {
	if cl.entry != nil && cl.entry.alias {
		cl.entry.uses.Add(1)
	}
	cl.call.Run(cl.argument, func(r anser.ProtocolReply) error {
		var err error
		if r.Err == nil {
			err = c.result(cl, r.Message)
		} else {
			c.fail(cl, r.Err)
		}
		c.server.inFlight.Add(-1)
		c.next()
		c.calls.Done()
		return err
	})
}

// result sends the reply of a method, or says that it is dropped: the client has left too many
// unread.
func (c *session) result(cl *call, reply any) error {
	codec, ok := c.codec.(link.Holder)
	if !ok || c.link == nil {
		return c.reply(cl, reply)
	}
	var dropped *anser.Error
	r := &Response{ServiceMethod: cl.request.ServiceMethod, Seq: cl.request.Seq}
	err := c.write(cl, func() error {
		return codec.WriteHeld(r, reply, func(n int) error {
			if dropped = cl.call.HoldReply(n, c.link.Out.Waits()); dropped != nil {
				return dropped
			}
			return nil
		})
	})
	if dropped != nil {
		c.fail(cl, dropped)
	}
	return err
}

// panicked logs a panic and returns the text for the caller.
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

// invalid replaces the reply of a failed call, as in net/rpc.
var invalid = struct{}{}

// fail answers a call with an error.
func (c *session) fail(cl *call, err error) {
	r := &Response{ServiceMethod: cl.request.ServiceMethod, Seq: cl.request.Seq, Error: failure(err)}
	if r.Error == "" {
		// On the wire an empty text means no error.
		r.Error = "rpc: the method failed without saying why"
	}
	c.write(cl, func() error {
		if w, ok := c.codec.(link.FailureWriter); ok {
			return w.WriteFailure(r, err)
		}
		return c.codec.WriteResponse(r, invalid)
	})
}

// failure returns the text of an error. A method's error is sent to the caller unchanged.
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

// write calls a write function of the codec. The codecs of this package write from many goroutines
// concurrently; if encoding fails, they send an error.
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
			c.codec.Close() // a part of the reply may have been written
		}
	} else {
		c.server.log().Debug("rpc: writing response", "method", cl.request.ServiceMethod, "err", err)
	}
	return err
}

// flush waits until all answers are written.
func (c *session) flush() {
	if c.link != nil {
		c.link.Out.FlushAll()
	}
}

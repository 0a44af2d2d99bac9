package anser

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// sessionCallee is the callee half of a client's connection, which takes the calls of the server.
type sessionCallee struct {
	calleeHalf
	state *reading // of the reader goroutine
}

// Handlers lets the servers that the client is connected to call the methods of s: the client has
// a [Session] there. It connects at once, and again when a connection is lost, without waiting
// for a call.
//
// The limits of s hold for the calls of all servers together, so that no server can flood the
// client: [MaxInFlight], [MaxCalls] per connection, [MaxMessage]. Handlers run on goroutines of
// their own. Streams are refused. Calls of a server are not subject to [Authenticate] and
// [Authorize] of s: TLS has authenticated the server, and a client without TLS accepts calls from
// any server that answers. s need not listen, but may, and may serve several clients, and methods
// may be added later. Clients of one process with the same s share their connections, and so
// their sessions. Close s after the clients.
func Handlers(s *Server) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(s != nil, "anser.Handlers: the server is nil: leave the option out for a client that takes no calls") {
			o.handlers = s
		}
	})
}

// attach prepares s for the calls that clients pass to it.
func (s *Server) attach() error {
	if err := s.usable(); err != nil {
		return fmt.Errorf("anser.Handlers: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrServerClosed
	}
	if len(s.mistakes) > 0 {
		return fmt.Errorf("anser.Handlers: the server cannot serve: %w", errors.Join(s.mistakes...))
	}
	s.serving = true
	return nil
}

// settle completes the settings of a client's connection.
func (s *Server) settle(own *wire.Settings) {
	own.MaxCalls, own.Compressions = s.settings.MaxCalls, s.settings.Compressions
	own.Life, own.KeyAge = s.settings.Life, s.settings.KeyAge
}

// inbound returns the callee half of the client's connection c, whose calls s serves.
func (s *Server) inbound(c *clientConn) inboundCalls {
	in := &sessionCallee{
		calleeHalf: calleeHalf{conn: c.conn, server: s, idBit: fromServer, lane: s.lanes.Add(1)},
		state:      &reading{desk: new(desk), generation: 1, lastID: fromServer},
	}
	in.unread.SetBudget(&s.memory)
	if tc, ok := c.nc.(interface{ ConnectionState() tls.ConnectionState }); ok {
		state := tc.ConnectionState()
		in.tls = &state
	}
	s.mu.Lock()
	if s.attached == nil {
		s.attached = make(map[*calleeHalf]struct{})
	}
	s.attached[&in.calleeHalf] = struct{}{}
	s.mu.Unlock()
	return in
}

// called handles METHOD, REQUEST and CANCEL of a server, and the first PART of a REQUEST, and the
// one that ends it early.
func (c *sessionCallee) called(h wire.Header, body []byte) error {
	s := c.state
	s.now = mono.Now()
	s.arrived = s.now
	var err error
	switch h.Type {
	case wire.TypeMethod:
		return c.nameMethod(s, body)
	case wire.TypeCancel:
		return c.cancel(s, h, body)
	case wire.TypePart:
		if len(body) == 0 { // it ends the REQUEST early
			s.inParts = 0
		} else if err = c.takeID(s, h.ID); err == nil {
			s.inParts = h.ID
		}
		return err
	default:
		_, err = c.request(s, h, body)
	}
	if len(s.out) > 0 {
		err = errors.Join(err, c.answerAtOnce(s.out))
		s.out = s.out[:0]
	}
	return err
}

// busyLocked reports whether calls of the server run.
func (c *sessionCallee) busyLocked() bool { return c.detached > 0 }

// end cancels the handlers that run, after the connection has ended.
func (c *sessionCallee) end() {
	c.server.mu.Lock()
	delete(c.server.attached, &c.calleeHalf)
	c.server.mu.Unlock()
	c.cancelAll(errConnClosed)
}

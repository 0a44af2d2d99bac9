package anser

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/anser-rpc/anser/wire"
)

// callee is what a client's connection needs to take calls of the server.
type callee struct {
	client *clientConn
	conn   *serverConn
	state  *reading
}

// Handlers lets the servers that the client is connected to call the methods of s: the client has a
// [Session] there. It connects at once, and again when a connection is lost, without waiting for a call.
//
// The limits of s hold for the calls of all servers together, so that none can flood the client: [MaxInFlight],
// [MaxCalls] for each connection, [MaxMessage]. Handlers run on goroutines of their own. Streams are refused.
// Calls of a server are not subject to [Authenticate] and [Authorize] of s: TLS has proven the server, and a client
// without TLS takes the calls of whoever answers.
// s need not listen, but may, and may serve several clients, and methods may be added later. Clients of one
// process with the same s share their connections, and so their sessions. Close s after the clients.
func Handlers(s *Server) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(s != nil, "anser.Handlers: the server is nil: leave the option out for a client that takes no calls") {
			o.handlers = s
		}
	})
}

// attach prepares s for the calls that clients pass on to it.
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

// inbound returns what takes the calls of a server on the client's connection c.
func (s *Server) inbound(c *clientConn) inboundCalls {
	in := &serverConn{server: s, far: &c.writer}
	in.conn.init(c.nc, &c.wg, 0)
	if tc, ok := c.nc.(interface{ ConnectionState() tls.ConnectionState }); ok {
		state := tc.ConnectionState()
		in.tls = &state
	}
	in.peer = c.peer
	s.mu.Lock()
	if s.attached == nil {
		s.attached = make(map[*serverConn]struct{})
	}
	s.attached[in] = struct{}{}
	s.mu.Unlock()
	return &callee{c, in, &reading{generation: 1}}
}

// called handles METHOD, REQUEST and CANCEL of a server.
func (in *callee) called(h wire.Header, body []byte) error {
	c, s := in.conn, in.state
	s.now = nanotime()
	s.arrived = s.now
	var err error
	switch h.Type {
	case wire.TypeMethod:
		return c.nameMethod(s, body)
	case wire.TypeCancel:
		return c.cancel(s, h, body)
	default:
		if h.Flags&wire.FlagStream != 0 {
			err = c.refuseStream(s, h)
		} else {
			_, err = c.request(s, h, body)
		}
	}
	if len(s.out) > 0 {
		putUint64(s.out[idOffset:], getUint64(s.out[idOffset:])|fromServer)
		err = errors.Join(err, in.client.answerAtOnce(s.out))
		s.out = s.out[:0]
	}
	return err
}

// busy reports whether calls of the server run.
func (in *callee) busy() bool {
	in.conn.mu.Lock()
	defer in.conn.mu.Unlock()
	return in.conn.detached > 0
}

// end cancels the handlers that run, after the connection has ended.
func (in *callee) end() {
	c := in.conn
	c.server.mu.Lock()
	delete(c.server.attached, c)
	c.server.mu.Unlock()
	c.cancelAll(errConnClosed)
}

// refuseStream refuses a stream, which only clients open.
func (c *serverConn) refuseStream(s *reading, h wire.Header) error {
	if h.ID <= s.lastID {
		return wire.Errorf(wire.BadID, "REQUEST with id %d after %d: ids must grow", h.ID, s.lastID)
	}
	s.lastID = h.ID
	c.server.stats.refused.Add(1)
	b := refusal(Unimplemented, "a client takes no streams").body()
	s.out = c.appendError(s.out, h.ID, 0, &b)
	return nil
}

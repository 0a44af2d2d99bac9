package anser

import "github.com/anser-rpc/anser/wire"

// sessionCaller is the caller half of a server's connection, which calls the client. The client
// has made the connection, and the reader goroutine of the connection delivers the replies.
type sessionCaller struct {
	callerHalf
	to *serverConn
}

// newSessionCaller makes the caller half of c, whose calls come from the client of h.
func newSessionCaller(c *serverConn, h *host) *sessionCaller {
	half := &sessionCaller{to: c}
	half.init(&c.link, h)
	half.idBit, half.successor = fromServer, half
	if c.auth != nil {
		half.trust = c.auth
	}
	half.role.who.Store(goroutineReads)
	half.role.batch = make([]arrived, 1)
	return half
}

// drainPeer asks the client to make another connection.
func (s *sessionCaller) drainPeer() { s.to.startDrain(s.to.server.o.grace) }

// inUse reports whether calls to the client are open.
func (s *sessionCaller) inUse() bool { return s.busy.Load() > 0 }

// awaits reports whether the client's reply to a call is due.
func (s *sessionCaller) awaits(h wire.Header) (bool, error) {
	h.ID &^= fromServer
	return s.callerHalf.awaits(h)
}

// answered handles the client's reply to a call. It runs on the reader goroutine.
func (s *sessionCaller) answered(h wire.Header, body []byte) error {
	s.role.batch[0] = arrived{id: h.ID &^ fromServer, kind: h.Type, flags: h.Flags, body: body}
	s.role.n = 1
	_, err := s.deliver(false) // more may have been read
	return err
}

// sessionCaller returns the caller half of the connection, or nil before the first call to the
// client.
func (c *serverConn) sessionCaller() *sessionCaller {
	if half := c.toClient.Load(); half != nil {
		return (*half).(*sessionCaller)
	}
	return nil
}

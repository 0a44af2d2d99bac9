package netrpc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/handshakes"
)

// handshake performs the steps before the first request.
func (c *session) handshake() error {
	if err := c.handshakeTLS(); err != nil {
		return err
	}
	if err := c.open(); err != nil {
		return err
	}
	c.introduce(or(c.server.HandshakeTimeout, defaultHandshake))
	return nil
}

// handshakeTLS performs the TLS handshake of a connection that needs one. Afterwards the
// connection has no deadline.
func (c *session) handshakeTLS() error {
	if c.link == nil { // a third-party codec reads at its own pace
		if !c.place.ownDeadlines() {
			return errTurnedOut
		}
		c.place.leave()
		return nil
	}
	conn, ok := c.link.Transport().(net.Conn)
	if !ok {
		return nil
	}
	if c.place.pending == nil && c.request == nil {
		c.place = c.server.enterHandshake(conn)
	}
	if tc, ok := conn.(*tls.Conn); ok && c.peer.TLS == nil {
		if c.place.pending == nil {
			return anser.ErrServerClosed
		}
		c.place.pending.AwaitHello()
		if err := tc.HandshakeContext(c.ctx); err != nil {
			return fmt.Errorf("TLS: %w", err)
		}
		state := tc.ConnectionState()
		c.peer.TLS = &state
	}
	if !c.place.ownDeadlines() {
		return errTurnedOut
	}
	return nil
}

// errTurnedOut is the end of a connection whose place another one got.
var errTurnedOut = errors.New("rpc: the server is at its limit of connections in their handshake, and this one kept it waiting")

// lazyPlaces are the places of a server, made for the first connection that needs one.
type lazyPlaces struct {
	once sync.Once
	all  *handshakes.Places
}

// enterHandshake waits for a place for a connection, and bounds the time of its handshake. The
// zero place is for a connection that needs none, and for every one of a server that is closed.
func (s *Server) enterHandshake(conn net.Conn) place {
	under := conn
	switch conn := conn.(type) {
	case *peerConn: // it has left its handshake at the server that accepted it
		return place{}
	case *tls.Conn:
		under = conn.NetConn()
	default:
		if !s.authenticates() {
			return place{}
		}
	}
	h := &s.handshakes
	h.once.Do(func() {
		h.all = handshakes.New(handshakes.Config{
			Places: s.maxHandshakes(), Timeout: or(s.HandshakeTimeout, defaultHandshake),
			Evicted: func() { s.stats.refusedConns.Add(1) },
		})
	})
	return place{pending: h.all.Enter(under, s.isClosed)}
}

func (s *Server) maxHandshakes() int { return or(s.MaxHandshakes, defaultHandshakes) }

// place is the place of a connection among those in their handshake. The zero value is none.
type place struct {
	pending *handshakes.Pending
	left    bool
}

// ownDeadlines ends the deadline of the handshake: what reads from the connection sets its own. It
// returns false if the connection has lost its place.
func (p *place) ownDeadlines() bool { return p.pending == nil || p.pending.OwnDeadlines() }

// heard notes that the server waits for nothing more. It returns false if the connection has lost
// its place.
func (p *place) heard() bool { return p.pending == nil || p.left || p.pending.Heard() }

// awaiting notes, after heard, that a login is due. With TLS it may come a round trip after the end
// of the handshake, otherwise it comes right after the connection.
func (p *place) awaiting(tls bool) {
	switch {
	case p.pending == nil || p.left:
	case tls:
		p.pending.Answering()
	default:
		p.pending.Awaiting()
	}
}

// lost reports whether the connection has lost its place.
func (p *place) lost() bool { return !p.heard() }

// leave gives the place back, if it has not been given back yet.
func (p *place) leave() {
	if p.pending != nil && !p.left {
		p.left = true
		p.pending.Leave()
	}
}

package anser

import (
	"crypto/rand"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// lapser is the proof of an identity, which may have ended.
type lapser interface{ lapsed(now mono.Time) bool }

// callHandler serves the calls that servers make to their clients; see [Handlers].
type callHandler interface {
	// attach prepares it for clients.
	attach() error
	// settle completes the settings of a client's connection.
	settle(own *wire.Settings)
	// inbound returns what takes the calls of one connection.
	inbound(c *clientConn) inboundCalls
}

// inboundCalls takes the calls of a server to its client on one connection.
type inboundCalls interface {
	// called handles METHOD, REQUEST and CANCEL, and the header of the first PART of a REQUEST, and
	// of the PART that ends it early. It runs on the reader goroutine and does not wait.
	called(h wire.Header, body []byte) error
	// busyLocked reports whether calls run. The lock of the connection is held.
	busyLocked() bool
	// end cancels them: the connection has ended.
	end()
}

// called handles METHOD, REQUEST and CANCEL of a server, and the header of the first PART of a
// REQUEST, and of the PART that ends it early.
func (c *clientConn) called(h wire.Header, body []byte) error {
	handler := c.host.handlers
	if handler == nil {
		return wire.Errorf(wire.BadFrame, "%s frame from a server, but this client takes no calls", h.Type)
	}
	if h.Type != wire.TypeMethod && h.ID&fromServer == 0 {
		return wire.Errorf(wire.BadID, "%s with the id %d, which a server does not choose", h.Type, h.ID)
	}
	in := c.inbound.Load()
	if in == nil {
		in = new(handler.inbound(c))
		c.inbound.Store(in)
	}
	c.pings = pingLimit{}
	if p := c.role.reader.parts; p != nil && h.ID == p.Head.ID {
		switch h.Type {
		case wire.TypeCancel:
			c.role.reader.dropParts()
		case wire.TypeRequest:
			return wire.Errorf(wire.BadID, "REQUEST with the id %d between the PARTs of another one", h.ID&^fromServer)
		}
	}
	return (*in).called(h, body)
}

// part handles a PART frame of a server.
func (c *clientConn) part(h wire.Header, body []byte) error {
	rd := c.role.reader
	if p := rd.parts; p != nil {
		err := rd.takePart(h, body)
		switch {
		case err != nil || len(body) > 0:
			return err
		case p.Head.Type == wire.TypeReply:
			return p.mayEndEarly(c.awaits)
		}
		return c.called(h, nil)
	}
	begun, err := rd.firstPart(h, body)
	if err != nil {
		return err
	}
	wanted := true
	if begun.Head.Type == wire.TypeReply {
		wanted, err = c.awaits(begun.Head)
		wanted = wanted && !c.refuseReply(begun.Head.ID)
	} else {
		err = c.called(h, body)
	}
	if err != nil {
		return err
	}
	return rd.beginParts(begun, body, wanted)
}

// servesLocked reports whether calls of the server run on this side of the connection.
func (c *clientConn) servesLocked() bool {
	in := c.inbound.Load()
	return in != nil && (*in).busyLocked()
}

// newSessionID returns a number that cannot be guessed: with it, a peer can take over the session
// of a client without a certificate.
func newSessionID() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return max(getUint64(b[:]), 1)
}

package grpcclient

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/wire"
)

// translateLocked takes bytes of the client, which need not end with a frame.
func (c *Conn) translateLocked(p []byte) error {
	if len(c.partial) > 0 {
		c.partial = append(c.partial, p...)
		p = c.partial
	}
	rest := p
	if !c.greeted {
		if len(p) < wire.PrefaceSize {
			c.partial = append(c.partial[:0], p...)
			return nil
		}
		if err := wire.ParsePreface(p); err != nil {
			return err
		}
		c.greeted = true
		rest = p[wire.PrefaceSize:]
	}
	for len(rest) >= wire.HeaderSize {
		h, err := wire.ParseHeader(rest)
		if err != nil {
			return err
		}
		end := wire.HeaderSize + int(h.Length)
		if len(rest) < end {
			break
		}
		if err := c.clientFrameLocked(h, rest[wire.HeaderSize:end]); err != nil {
			return err
		}
		rest = rest[end:]
	}
	if len(rest) == 0 && cap(c.partial) > largeBuffer {
		c.partial = nil
	}
	c.partial = append(c.partial[:0], rest...)
	return nil
}

// clientFrameLocked handles a frame of the client.
func (c *Conn) clientFrameLocked(h wire.Header, body []byte) error {
	switch h.Type {
	case wire.TypeSettings:
		return c.settleLocked(body)
	case wire.TypeAuth:
		scheme, credential, err := wire.ParseAuth(body)
		if err != nil {
			return err
		}
		return c.authorizeLocked(scheme, credential)
	case wire.TypeMethod:
		_, name, err := wire.ParseMethod(body)
		if err != nil {
			return err
		}
		c.methods = append(c.methods, newMethod(name))
	case wire.TypeRequest:
		return c.requestLocked(h, body)
	case wire.TypeCancel:
		c.cancelLocked(h.ID)
	case wire.TypeDrain:
		c.left = c.left || h.Flags&wire.FlagAck != 0 && c.leaving
		c.endedLocked()
	case wire.TypePing:
		value, err := wire.ParsePing(body)
		if err != nil {
			return err
		}
		c.pingLocked(value)
	case wire.TypeData:
		return c.clientDataLocked(h, body)
	case wire.TypeEnd:
		if st := c.calls[h.ID]; st != nil && st.isStream && !st.clientEnded {
			st.clientEnded = true
			c.sendLocked(st)
		}
	case wire.TypeWindow:
		credit, err := wire.ParseWindow(h.ID, body)
		if err != nil {
			return err
		}
		c.clientWindowLocked(h.ID, int64(credit))
	}
	return nil
}

// settleLocked answers the client's preface.
func (c *Conn) settleLocked(body []byte) error {
	var err error
	if c.client, err = wire.ParseSettings(body); err != nil {
		return err
	}
	c.upCredit = int64(c.client.ConnWindow)
	if n := uint32(c.client.StreamWindow); n != sendWindow {
		c.out = appendSettings(c.out, setting{h2.SettingWindow, n})
	}
	if more := int64(c.client.ConnWindow) - connWindow; more > 0 {
		c.out = h2.AppendWindowUpdate(c.out, 0, more)
		c.window += more
	}
	if c.client.Features&wire.FeatureAuth == 0 {
		c.helloLocked()
	} // otherwise AUTH follows
	return nil
}

// helloLocked sends what an Anser server sends first.
func (c *Conn) helloLocked() {
	own := wire.DefaultSettings()
	own.MaxFrame = h2.MaxWindow // the server says what is too large
	own.MaxCalls, own.MaxStreams = maxQueued, maxQueued
	own.StreamWindow, own.ConnWindow = sendWindow, connWindow
	own.AddCompression(exchange.GzipNumber)
	c.up = wire.AppendSettings(wire.AppendPreface(c.up), own)
	if c.shaken = true; c.leaving { // before the client came
		c.leaving = false
		c.leaveLocked()
	}
}

// authorizeLocked takes a credential, which every call shows from here on.
func (c *Conn) authorizeLocked(scheme string, credential []byte) error {
	token, ok := exchange.Authorization(scheme, credential)
	if !ok {
		if !c.shaken {
			c.up = wire.AppendPreface(c.up)
		}
		c.up = wire.AppendClose(c.up, wire.Unauthenticated, exchange.NoAuthorization(scheme))
		c.bye = true
		c.endLocked(io.EOF)
		return nil
	}
	c.token = token
	if !c.shaken {
		c.helloLocked()
	}
	return nil
}

// cancelLocked ends a call that the client has given up.
func (c *Conn) cancelLocked(id uint64) {
	st := c.calls[id]
	switch {
	case st == nil:
	case st.id == 0:
		delete(c.calls, id) // it is skipped in the queue
		c.discardLocked(st)
	default:
		c.resetLocked(st, h2.Cancel)
		c.endedLocked()
	}
}

// clientDataLocked handles a message of a stream, or a part of one.
func (c *Conn) clientDataLocked(h wire.Header, body []byte) error {
	_, compression, payload, err := wire.ParseData(body)
	if err != nil {
		return err
	}
	st := c.calls[h.ID]
	if st == nil || !st.isStream || st.clientEnded {
		c.returnLocked(nil, int64(len(body)))
		return nil
	}
	if h.Flags&wire.FlagMore != 0 || len(st.joined) > 0 {
		// The length of a message is sent before it, so its parts are joined.
		st.joined = append(st.joined, payload...)
		c.returnLocked(st, int64(len(body)))
		if h.Flags&wire.FlagMore != 0 {
			return nil
		}
		c.messageLocked(st, st.joined, compression == 0)
		st.joined = nil
		return nil
	}
	st.owed += int64(len(body)) // until it has left
	c.messageLocked(st, payload, compression == 0)
	return nil
}

// clientWindowLocked takes credit that the client returns.
func (c *Conn) clientWindowLocked(id uint64, n int64) {
	if id == 0 {
		c.upCredit += n
		free := n - min(n, c.overhead)
		c.overhead -= n - free
		c.giveBackLocked(free)
		held := c.held
		c.held = nil
		for _, st := range held {
			st.listed = false
			c.deliverLocked(st)
		}
		return
	}
	st := c.calls[id]
	if st == nil {
		return
	}
	st.upCredit += n
	free := n - min(n, st.overhead)
	st.overhead -= n - free
	c.consumeLocked(st, free)
	c.deliverLocked(st)
}

// pingLocked answers a PING of the client. The server is asked only if it has answered a call since
// the last time, or long after it: gRPC servers close connections that ping more often.
func (c *Conn) pingLocked(value uint64) {
	now := mono.Now()
	if c.pinging || !c.answered && c.pinged != 0 && now.Sub(c.pinged) < pingAfter {
		if !c.pinging {
			c.up = wire.AppendPing(c.up, wire.TypePong, value)
		}
		c.waiting = value
		return
	}
	c.pinged, c.answered, c.waiting, c.pinging = now, false, value, true
	c.out = append(c.out, h2.FrameHeader(8, h2.FramePing, 0, 0)...)
	c.out = binary.BigEndian.AppendUint64(c.out, value)
}

// pingAfter is the time that gRPC servers want between two PING frames without a call.
const pingAfter = 5*time.Minute + 10*time.Second

// refuseLocked tells the client that a call did not run.
func (c *Conn) refuseLocked(id uint64, oneway bool, code wire.Code, text string) {
	if !oneway {
		c.up = wire.AppendError(c.up, id, 0, &wire.ErrorBody{Code: code, Outcome: wire.Refused, Message: text})
	}
}

// leaveLocked tells the client to make its further calls over another connection.
func (c *Conn) leaveLocked() {
	if !c.leaving && c.greeted {
		c.up = wire.AppendDrain(c.up, 0, 30_000)
	}
	c.leaving = true
}

// byeLocked tells the client that the connection has ended, once.
func (c *Conn) byeLocked() {
	if !c.bye && c.greeted {
		c.bye = true
		c.up = wire.AppendClose(c.up, wire.Normal, "the server is going away")
	}
}

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

// requestLocked begins a call, at once or when others have ended.
func (c *Conn) requestLocked(h wire.Header, body []byte) error {
	var r wire.Request
	err := wire.ParseRequest(h.Flags, body, &r)
	if _, ok := err.(*wire.CallError); err != nil && !ok {
		return err
	}
	oneway := h.Flags&wire.FlagOneway != 0
	switch {
	case err != nil:
		c.refuseLocked(h.ID, oneway, wire.InvalidArgument, err.Error())
		return nil
	case r.Method == 0 || int(r.Method) > len(c.methods):
		return wire.Errorf(wire.BadMethod, "no method has the number %d", r.Method)
	case c.leaving || c.lastID > h2.MaxWindow-2*maxQueued:
		c.leaveLocked()
		c.refuseLocked(h.ID, oneway, wire.Unavailable, "the server takes no further calls on this connection")
		return nil
	}
	pairs, key, err := wire.ParseRequestMetadata(r.Metadata, c.client.MaxMetadata)
	if err == nil && key != "" {
		err = &wire.CallError{Code: wire.Unimplemented, Text: "servers of gRPC do not remember calls by idempotency keys: call without one"}
	}
	if fault, ok := err.(*wire.CallError); ok {
		c.refuseLocked(h.ID, oneway, fault.Code, fault.Text)
		return nil
	}
	if err != nil {
		return err
	}
	if len(c.calls)-len(c.streams) >= maxQueued {
		c.refuseLocked(h.ID, oneway, wire.ResourceExhausted, "the server runs as many calls as it allows on a connection, and "+itoa(maxQueued)+" wait for it")
		return nil
	}
	st := &stream{
		call: h.ID, oneway: oneway, isStream: h.Flags&wire.FlagStream != 0, method: c.methods[r.Method-1],
		codec: r.Codec, compression: r.Compression, upCredit: int64(c.client.StreamWindow),
	}
	if r.Timeout > 0 {
		st.deadline = mono.Now().Add(time.Duration(r.Timeout) * time.Microsecond)
		c.sweepLaterLocked()
	}
	c.calls[h.ID] = st
	plain := r.Compression == 0 || h.Flags&wire.FlagPlain != 0
	if len(c.streams) >= c.most || len(c.queue) > 0 {
		// The header is encoded when it is sent: the order of headers is that of the table's
		// changes.
		st.fields = c.appendFields(nil, st, &r, h.Flags, pairs)
		c.queue = c.listLocked(c.queue, st)
	} else {
		c.openLocked(st, &r, h.Flags, pairs)
	}
	st.clientEnded = !st.isStream
	if len(r.Payload) > 0 || !st.isStream {
		c.messageLocked(st, r.Payload, plain)
	}
	return nil
}

// openLocked sends the header of a call.
func (c *Conn) openLocked(st *stream, r *wire.Request, flags wire.Flags, pairs []wire.Pair) {
	block := c.headers.fixed(st.method, st.codec)
	c.beginLocked(st)
	if r.Timeout == 0 && len(pairs) == 0 && flags&wire.FlagTrace == 0 && r.Compression == 0 && c.token == "" {
		c.out = appendHeader(c.out, st.id, block)
		return
	}
	c.headers.whole = append(c.headers.whole[:0], block...)
	if r.Timeout > 0 {
		c.headers.whole = appendTimeout(c.headers.whole, r.Timeout)
	}
	c.headers.whole = c.appendFields(c.headers.whole, st, r, flags, pairs)
	c.out = appendHeader(c.out, st.id, c.headers.whole)
}

// openQueuedLocked sends the headers of calls that waited.
func (c *Conn) openQueuedLocked() {
	for len(c.queue) > 0 && len(c.streams) < c.most && !c.leaving {
		st := c.queue[0]
		c.queue[0] = nil
		if c.queue = c.queue[1:]; len(c.queue) == 0 {
			c.queue = nil
		}
		if c.calls[st.call] != st {
			continue // it was cancelled
		}
		c.headers.whole = append(c.headers.whole[:0], c.headers.fixed(st.method, st.codec)...)
		if st.deadline != 0 {
			left := st.deadline.Sub(mono.Now())
			if left <= 0 {
				c.expireLocked(st)
				continue
			}
			c.headers.whole = appendTimeout(c.headers.whole, uint64(left/time.Microsecond)+1)
		}
		c.headers.whole = append(c.headers.whole, st.fields...)
		st.fields = nil
		c.beginLocked(st)
		c.out = appendHeader(c.out, st.id, c.headers.whole)
		c.sendLocked(st)
	}
}

// expireLocked ends a call that waited for too long.
func (c *Conn) expireLocked(st *stream) {
	delete(c.calls, st.call)
	c.discardLocked(st)
	c.refuseLocked(st.call, st.oneway, wire.DeadlineExceeded, "the time of the call was over before the server took it: it runs as many calls as it allows")
}

// beginLocked gives a call its stream.
func (c *Conn) beginLocked(st *stream) {
	c.lastID = (c.lastID + 1) | 1
	st.id, st.credit, st.window = c.lastID, c.initial, int64(c.client.StreamWindow)
	c.streams[st.id] = st
}

// sweepLaterLocked makes sure that calls whose time is over are looked for.
func (c *Conn) sweepLaterLocked() {
	switch {
	case c.sweeping:
	case c.sweeper == nil:
		c.sweeper = time.AfterFunc(sweepAfter, c.sweep)
	default:
		c.sweeper.Reset(sweepAfter)
	}
	c.sweeping = true
}

// sweepAfter is how often calls are looked for that a server does not end in time. A client that
// knows the time of a call sends no cancellation when it is over.
const sweepAfter = 5 * time.Second

func (c *Conn) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweeping = false
	if c.err != nil {
		return
	}
	now := mono.Now()
	for _, st := range c.calls {
		switch {
		case st.deadline == 0:
		case now.Sub(st.deadline) <= time.Second:
			c.sweepLaterLocked()
		case st.id == 0:
			c.expireLocked(st) // it is skipped in the queue
		default:
			c.resetLocked(st, h2.Cancel)
		}
	}
	c.endedLocked()
	c.wakeLocked()
	c.flushLocked(false)
}

// appendFields appends the fields of a header that are not the same for all calls of a method.
func (c *Conn) appendFields(b []byte, st *stream, r *wire.Request, flags wire.Flags, pairs []wire.Pair) []byte {
	if c.token != "" {
		b = appendField(b, "authorization", c.token)
	}
	if r.Compression == exchange.GzipNumber {
		b = appendField(b, "grpc-accept-encoding", "gzip")
		b = appendField(b, "grpc-encoding", "gzip") // messages that gain nothing are not compressed
	}
	if flags&wire.FlagTrace != 0 {
		b = appendField(b, "traceparent", exchange.TraceParent(&r.Trace))
	}
	fields, accepts := exchange.RequestFields(pairs)
	st.accepts = accepts
	for _, f := range fields {
		b = appendField(b, f.Name, f.Value)
	}
	return b
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

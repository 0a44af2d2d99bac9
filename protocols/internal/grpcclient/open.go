package grpcclient

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/wire"
)

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

package anser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// forwardedCall is a call that is forwarded.
type forwardedCall struct {
	p        *forwarder
	ctx      *callContext
	extras   callExtras // saves an allocation
	call     ForwardCall
	flags    wire.Flags // of the REQUEST
	held     int        // bytes that the server's memory counts
	arrived  mono.Time
	observed *observedCall // nil: the observers do not know of it
	reported bool          // they have got its request

	mu sync.Mutex // guards up
	up stopper    // nil before the call was forwarded, and for a stream
}

// newCall makes the context of a call.
func (p *forwarder) newCall(c *calleeHalf, s *reading, m *method, h wire.Header, r *wire.Request) *forwardedCall {
	k := &forwardedCall{
		p: p, flags: h.Flags, arrived: s.arrived, ctx: c.newContext(s, m, h, r),
		call: ForwardCall{Method: m.name, Codec: r.Codec, Stream: h.Flags&wire.FlagStream != 0, Oneway: h.Flags&wire.FlagOneway != 0},
	}
	if x := k.ctx.extras; x != nil {
		k.extras = *x
		if x.packing != nil && x.packing.compressor == nil {
			x.packing.compressor = opaqueCompressor(r.Compression)
		}
	}
	k.extras.forwarded = k
	k.ctx.extras = &k.extras
	return k
}

// opaque reports whether the request is in an algorithm that the server does not have.
func (k *forwardedCall) opaque() bool {
	return k.extras.packing != nil && isOpaque(k.extras.packing.compressor)
}

// stop cancels the call. Its result is dropped if the call is no longer among the open ones.
func (k *forwardedCall) stop() {
	k.mu.Lock()
	up := k.up
	k.mu.Unlock()
	if up != nil {
		up.stop()
	}
}

// start forwards the request.
func (k *forwardedCall) start(r *wire.Request, flags wire.Flags) {
	ctx := context.Context(k.ctx)
	var up upstream
	var method string
	refused := k.observe(len(r.Payload))
	if refused == nil {
		if k.observed != nil {
			ctx = k.observed.ctx
		}
		up, method, refused = k.choose(ctx)
	}
	var f forwarding
	if refused == nil {
		f, refused = k.forwarding(method, *r, flags, k)
	}
	if refused != nil {
		k.forwarded(forwardReply{}, refused)
		return
	}
	k.ctx.method.calls.Add(k.ctx.conn.lane, 1)
	call := up.forward(ctx, f)
	k.mu.Lock()
	k.up = call
	k.mu.Unlock()
	if k.ctx.isOver() { // cancelled before stop could find it
		call.stop()
	}
}

// observe tells the observers of the call, any of which may refuse it. size is that of the request.
func (k *forwardedCall) observe(size int) (refused *Error) {
	srv := k.ctx.conn.server
	if srv.o.observers == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			refused = srv.panicError(k.ctx, panicRequest, p)
		}
	}()
	x := observedCalls.Get().(*observedCall)
	k.observed = x
	srv.observeCall(x, k.ctx, k.arrived, 0, size)
	if refused = srv.observeRequest(k.ctx, size); refused == nil {
		k.reported = srv.o.observers.messages && !k.ctx.oneway
	}
	return refused
}

// choose asks where the call goes. A panic of the user's code fails only this call.
func (k *forwardedCall) choose(ctx context.Context) (up upstream, method string, refused *Error) {
	defer func() {
		if p := recover(); p != nil {
			refused = k.ctx.conn.server.logPanic(k.ctx, panicForward, p)
			refused.Outcome, refused.RetryAfter = Refused, RetryNever
		}
		if refused != nil {
			k.call.Ended = nil
		}
	}()
	up, method, err := k.p.route(ctx, &k.call)
	switch {
	case err != nil:
		return nil, "", routeError(err)
	case up == nil:
		return nil, "", refusal(Unimplemented, "method %q is not served here, and calls of it are not forwarded", k.call.Method)
	case method == "":
		method = k.call.Method
	}
	return up, method, nil
}

// ended tells the function that has chosen where the call goes that it has ended there.
func (k *forwardedCall) ended() {
	if k.call.Ended == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			k.ctx.conn.server.logPanic(k.ctx, panicForward, p)
		}
	}()
	k.call.Ended()
}

// routeError returns the error of a call that the function of Forward refused.
func routeError(err error) *Error {
	out := refusal(CodeOf(err), "%v", err)
	if e, ok := errors.AsType[*Error](err); ok {
		out.Details, out.RetryAfter = e.Details, e.RetryAfter
	}
	return out
}

// forwarding returns the call as the client gets it.
func (k *forwardedCall) forwarding(method string, r wire.Request, flags wire.Flags, end forwardEnd) (f forwarding, refused *Error) {
	if k.call.Set != nil {
		block, fault := setMetadata(r.Metadata, k.call.Set)
		if fault != nil {
			return f, fault
		}
		r.Metadata = block
		k.extras.metadata = slices.Clone(block) // a handler's calls inherit from there
	}
	f = forwarding{method: method, request: r, flags: flags, deadline: k.ctx.deadline, key: k.extras.key, end: end}
	if k.extras.packing != nil {
		f.compressor = k.extras.packing.compressor
	}
	return f, nil
}

// forwarded answers the call.
func (k *forwardedCall) forwarded(r forwardReply, fault *Error) {
	k.ended()
	ctx, c := k.ctx, k.ctx.conn
	if fault == nil {
		fault = c.unfit(&r)
	}
	if fault != nil {
		fault = k.toCaller(fault)
		if ctx.method.failed.Add(1); fault.Outcome == Refused {
			ctx.method.failed.Add(-1)
			c.server.countRefusal(ctx.method, fault)
		}
	} else if !ctx.method.listed.Load() {
		k.p.list(ctx.method)
	}
	if k.observed != nil {
		if k.reported {
			c.server.observeReply(ctx, c.appendForwarded(nil, ctx, &r, fault))
		}
		c.server.endObserved(k.observed, asError(fault), len(r.payload))
	}
	ctx.finish()
	c.server.memory.Give(k.held)
	c.answerForwarded(ctx, &r, fault)
}

// toCaller returns an error of the call for its caller, and logs what the caller is not told.
func (k *forwardedCall) toCaller(e *Error) *Error {
	out := e.toCaller()
	if !e.Remote && out.Message != e.Message {
		k.ctx.conn.server.log.Debug("a call that was forwarded has failed", "method", k.ctx.method.name, "err", e)
	}
	return out
}

// unfit returns why the client does not accept a reply, or nil.
func (c *calleeHalf) unfit(r *forwardReply) *Error {
	size := wire.ReplySize + len(r.trailers) + len(r.payload)
	switch {
	case uint64(len(r.trailers)) > c.peer.MaxMetadata:
		return &Error{Code: ResourceExhausted, Outcome: Executed, Message: fmt.Sprintf("the trailers of %d bytes are over the client's limit of %d", len(r.trailers), c.peer.MaxMetadata)}
	case uint64(size) > c.peer.MaxFrame:
		return &Error{
			Code: ResourceExhausted, Outcome: Executed,
			Message: fmt.Sprintf("the reply of %d bytes is over the client's limit of %s: raise it there with anser.MaxMessage, or ask for less", size, frameLimit(c.peer.MaxFrame)),
		}
	}
	return nil
}

// appendForwarded appends the answer of a call.
func (c *calleeHalf) appendForwarded(out []byte, ctx *callContext, r *forwardReply, fault *Error) []byte {
	flags := r.flags & wire.FlagIdempotent
	switch {
	case ctx.oneway:
		return out
	case fault != nil:
		b := fault.body()
		if uint64(len(r.trailers)) <= c.peer.MaxMetadata {
			b.Metadata = r.trailers
		}
		return c.appendError(out, ctx.id, flags, &b)
	}
	at := len(out)
	out = wire.AppendReplyHead(out, ctx.id, flags, r.codec, r.compression, r.trailers)
	out = codec.AppendInPieces(out, r.payload)
	wire.PutLength(out[at:], uint32(len(out)-at-wire.HeaderSize))
	return out
}

// answerForwarded sends the answer of a call without waiting. Where that is not possible, because
// the client does not read, the answer is large or the connection may end with it, a goroutine
// waits, as a worker would.
func (c *calleeHalf) answerForwarded(ctx *callContext, r *forwardReply, fault *Error) {
	c.mu.Lock()
	ending := c.accepted != nil && c.accepted.acked // CLOSE may follow, whose writer waits
	if c.err == nil && (ending || len(r.payload) > loadBuffer || len(c.buf) > maxBuffered && c.writing) {
		c.background.Add(1)
		c.mu.Unlock()
		frame := c.appendForwarded(nil, ctx, r, fault)
		n := len(frame)
		if n <= smallRequest {
			c.unread.Force(n)
		} else if !c.holdReply(ctx.method, n) {
			frame, n = c.appendForwarded(nil, ctx, r, c.server.leftUnread(n)), 0
		}
		go func() {
			defer c.background.Done()
			c.answer(ctx, frame, lentReply{held: n, backlog: &c.unread})
			c.release(ctx)
		}()
		return
	}
	c.detached--
	// A cancelled or lost call is no longer in the table, and its reply is not needed.
	if c.running.Take(ctx.id) != nil && c.err == nil {
		before := len(c.buf)
		c.buf = c.appendForwarded(c.buf, ctx, r, fault)
		if n := len(c.buf) - before; n > 0 {
			c.appended += uint64(n)
			c.flushInBackgroundLocked()
		}
	}
	c.mu.Unlock()
	c.release(ctx)
}

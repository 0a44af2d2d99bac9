package anser

import (
	"context"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// Streams on a server's connection.

// openStream makes a worker run the handler of a stream.
func (c *calleeHalf) openStream(s *reading, n *named, ctx *callContext, cd codec.Codec, payload []byte) error {
	if refused := c.enterStream(ctx, cd, payload); refused != nil {
		return c.refuse(s, ctx, refused)
	}
	j := newJob(ctx, s.arrived)
	if c.auth != nil {
		c.confirm(n, ctx)
	}
	j.start()
	return nil
}

// enterStream adds a new stream to the open ones, unless a limit is reached.
func (c *calleeHalf) enterStream(ctx *callContext, cd codec.Codec, payload []byte) *Error {
	srv := c.server
	if c.accepted == nil {
		return refusal(Unimplemented, "a client takes no streams")
	}
	if srv.o.maxStreams == 0 {
		return refusal(Unimplemented, "the server offers no streams (anser.MaxStreams)")
	}
	st := newStream(&c.streams, ctx, cd, srv.o.maxMessage)
	st.id, st.ctx, st.badMessage = ctx.id, ctx, InvalidArgument
	packed := false
	if b := ctx.extras; b != nil && b.packing != nil {
		st.packing = srv.streamPacking(ctx.method, b.packing)
		packed = !b.packing.plain
	}
	if len(payload) > 0 {
		st.put(payload, packed)
	}
	if ctx.extras == nil {
		ctx.extras = new(callExtras)
	}
	ctx.extras.stream = st
	if !srv.inFlight.Take(c.lane) {
		return srv.tooManyInFlight()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streaming >= srv.o.maxStreams {
		srv.inFlight.Give(c.lane)
		return over(limitStreams, "the connection is at its limit of %d streams (anser.MaxStreams)", srv.o.maxStreams)
	}
	if uint64(c.detached) >= srv.settings.MaxCalls {
		srv.inFlight.Give(c.lane)
		return c.tooManyCalls()
	}
	c.streaming++
	srv.streams.Add(1)
	c.openLocked(ctx)
	return nil
}

// runStream runs the handler of a stream, unless the stream is refused, and ends the stream with
// the result.
func (c *calleeHalf) runStream(ctx *callContext, st *stream, refused *Error, arrived mono.Time) {
	unbind := ctx.AfterFunc(func() { st.stop(streamContextFailure(ctx)) })
	var frame []byte
	defer func() {
		if frame == nil { // the handler ends the goroutine, by runtime.Goexit
			frame = appendFault(nil, ctx, errExited)
		}
		unbind()
		ctx.finish()
		c.endStream(ctx, st, frame)
	}()
	if refused != nil {
		frame = appendRefusal(nil, ctx, refused)
		return
	}
	frame = c.server.converse(ctx, st, max(-st.spent-st.conn.head, 0), arrived) // see put
}

// converse runs the handler and returns the frame that ends its stream. first is the size in bytes
// of the message that opened it. A panic of the user's code affects only this stream.
func (s *Server) converse(ctx *callContext, st anyStream, first int64, arrived mono.Time) (frame []byte) {
	if s.o.observers.follow() {
		return s.converseObserved(ctx, st, first, arrived)
	}
	defer func() {
		if p := recover(); p != nil {
			frame = s.panicked(ctx, nil, panicRun, p)
		}
	}()
	ctx.method.calls.Add(ctx.conn.lane, 1)
	if err := ctx.method.stream(ctx, st); err != nil {
		return appendFault(nil, ctx, handlerError(err))
	}
	return wire.AppendEnd(nil, ctx.id, ctx.trailers())
}

// stream calls the handler of a stream through the interceptors.
func (m *method) stream(ctx context.Context, st anyStream) error {
	chain, sampled := m.interceptors()
	if chain == nil {
		return m.converseWith(ctx, st)
	}
	run := func(ctx context.Context, inv *Invocation) error {
		if inv.messages != nil {
			return m.converseWith(ctx, &watchedStream{st, inv.messages})
		}
		return m.converseWith(ctx, st)
	}
	return chain(ctx, &Invocation{Method: m.name, Server: true, Stream: true, stream: run, sampled: sampled})
}

// converseWith calls the handler of a stream with a context that an observer or interceptors made.
func (m *method) converseWith(ctx context.Context, st anyStream) error {
	if ctx != st.context() { // it may end earlier
		defer context.AfterFunc(ctx, func() { st.stop(streamContextFailure(ctx)) })()
		st.setContext(ctx)
	}
	return m.converse(ctx, st)
}

// streamWith is the end of the chain: it calls the handler with the context that the interceptors
// made.
func (m *method) streamWith(ctx context.Context, inv *Invocation) error {
	if inv.stream == nil {
		return errForeignStream
	}
	return inv.stream(ctx, inv)
}

var errUnfinished = &Error{
	Code: Internal, Outcome: Executed,
	Message: "the handler returned with success in the middle of a message: it must wait for the goroutines that send, and return the error of Send",
}

// endStream ends a stream whose handler has returned, and sends the last frame unless the stream
// has ended before.
func (c *calleeHalf) endStream(ctx *callContext, st *stream, frame []byte) {
	over := failure(FailedPrecondition, OutcomeUnknown, PhaseNone, nil, "the handler has returned: its stream is over")
	c.mu.Lock()
	err := c.waitRoomLocked(context.Background())
	c.streaming--
	c.detached--
	c.upkeep.Stir()
	st.overLocked(over) // the frame is the last one
	if st.partial && wire.Type(frame[4]) == wire.TypeEnd {
		frame = appendFault(nil, ctx, errUnfinished)
	}
	if c.running.Take(ctx.id) != nil && err == nil {
		c.appendLocked(frame)
		if !c.writing {
			c.flushLocked(c.detached > 0)
		}
	}
	c.mu.Unlock()
	st.stop(over)
	c.server.inFlight.Give(c.lane)
	c.server.streams.Add(-1)
	c.finishDrain()
}

// streamFrame handles DATA, END and WINDOW.
func (c *calleeHalf) streamFrame(s *reading, h wire.Header, body []byte) error {
	c.pings = pingLimit{}
	if h.ID == 0 {
		return c.streams.returned(nil, h, body)
	}
	c.mu.Lock()
	ctx := c.running.Get(h.ID)
	c.mu.Unlock()
	if ctx == nil {
		return c.streams.ignore(h, body, h.ID <= s.lastID)
	}
	st := ctx.stream()
	var err error
	switch {
	case st == nil:
		if err = c.streams.ignore(h, body, true); err == nil {
			err = streamError(wire.InvalidArgument, h.Type.String()+" for a call that is not a stream")
		}
	case h.Type == wire.TypeData:
		err = st.accept(&s.reader, h, body)
	case h.Type == wire.TypeEnd:
		if _, err = wire.ParseEnd(h.Flags, body); err == nil {
			err = st.halfClosed()
		}
	default:
		err = c.streams.returned(st, h, body)
	}
	if fault, ok := err.(*wire.CallError); ok {
		return c.failCall(s, ctx, fault)
	}
	return err
}

// failCall ends a call that breaks the protocol. Its handler's context ends.
func (c *calleeHalf) failCall(s *reading, ctx *callContext, fault *wire.CallError) error {
	c.mu.Lock()
	taken := c.running.Take(ctx.id)
	c.mu.Unlock()
	if taken == nil {
		return nil
	}
	e := &Error{Code: Code(fault.Code), Outcome: OutcomeUnknown, Message: fault.Text}
	if st := ctx.stream(); st != nil {
		st.stop(e)
	}
	ctx.end(context.Canceled)
	if !ctx.oneway {
		b := e.body()
		s.out = c.appendError(s.out, ctx.id, 0, &b)
	}
	return c.flushIfFull(s)
}

// trimStreams makes idle streams release memory, and reports whether some may release more in a
// second.
func (c *calleeHalf) trimStreams() (again bool) {
	for _, ctx := range c.openStreams() {
		again = ctx.stream().trim() || again
	}
	return again
}

// openStreams returns the contexts of the streams that are open.
func (c *calleeHalf) openStreams() (open []*callContext) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streaming > 0 {
		c.running.Each(func(ctx *callContext) {
			if ctx.stream() != nil {
				open = append(open, ctx)
			}
		})
	}
	return open
}

// The handler decides what to do when it cannot receive a message.

func (c *callContext) complete(*Error) {}

func (c *callContext) refuse(*stream, *Error) {}

func (c *callContext) received() {}

func (c *callContext) hit(l limit) { c.conn.server.stats.hit(l) }

func (c *callContext) lapse(*stream) {}

func (c *callContext) isClient() bool { return false }

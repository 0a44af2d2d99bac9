package anser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// streamOpening is what a client opens a stream with.
type streamOpening struct {
	client  *Client
	method  string
	first   any             // message, or nil
	in, out any             // nil pointers of the messages' types, for choosing the codec
	options *callOptions    //
	life    context.Context // of the stream
	end     context.CancelFunc
	codec   codec.Codec

	forward bool        // a server forwards it
	inside  bool        // the REQUEST has the first message
	chosen  chosenTrace // by observers
	observe bool        // observers learn of it

	// An interceptor may open the stream on another goroutine, and return before that.
	mu       sync.Mutex    // guards the fields below
	stream   *stream       // that was opened
	followed *followedCall // of which observers learn, or nil; the attempt that is sent has it
	over     bool          // open has returned
}

// clientStream is the state of a stream on the side that opened it.
type clientStream struct {
	client   *Client
	call     call // its place among the open calls of its connection
	conn     *callerHalf
	endpoint *endpoint
	method   *clientMethod
	sides    sides              // as far as its opening said
	end      context.CancelFunc // of the stream's context

	unbind   func() bool   // from the stream's context; guarded by the client's mu
	followed *followedCall // of which observers learn, or nil
}

// open opens the stream, through the interceptors.
func (r *streamOpening) open(ctx context.Context, opts []CallOption) (*stream, error) {
	o, fault := r.client.streamOptions(opts)
	if ctx == nil {
		fault = failure(InvalidArgument, NotSent, PhaseNone, nil, "the context is nil: pass context.Background()")
	}
	if fault != nil {
		fault.Method = r.method
		return nil, fault
	}
	r.options = o
	if o.timeout != 0 {
		r.life, r.end = context.WithTimeout(ctx, o.timeout)
	} else {
		r.life, r.end = context.WithCancel(ctx)
	}
	if r.client.o.observers.followCalls() {
		r.followed = r.client.callBegan(r.life, r.method, callKind{stream: true, forward: r.forward})
		r.life, r.chosen, r.observe = r.followed.ctx, r.followed.by.chosen(), true
	}
	inv := &Invocation{Method: r.method, Request: r.first, Stream: true, options: o, stream: r.openThrough}
	var err error
	if !r.client.intercepts(r.method) {
		err = r.openThrough(r.life, inv)
	} else {
		err = r.client.runInterceptors(r.life, inv)
	}
	st, followed := r.leave()
	if err == nil && st == nil {
		fault := failure(Internal, NotSent, PhaseNone, nil, "an interceptor ended the opening of a stream with success and did not open it: it must call next or return an error")
		fault.Method = r.method
		err = fault
	}
	if err == nil {
		return st, nil
	}
	switch {
	case st != nil:
		st.cancel(failure(Canceled, OutcomeUnknown, PhaseNone, err, "an interceptor failed after the stream was opened"))
	case followed != nil:
		r.client.callEnded(followed, err)
	}
	r.end()
	return nil, err
}

// leave ends the opening. It returns the stream that was opened, or what the observers must learn
// the end of; neither if an interceptor still opens the stream on another goroutine.
func (r *streamOpening) leave() (st *stream, followed *followedCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	followed, r.followed = r.followed, nil
	return r.stream, followed
}

// late returns why the stream cannot be opened, or nil.
func (r *streamOpening) late() *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lateLocked()
}

func (r *streamOpening) lateLocked() *Error {
	switch {
	case r.over:
		return failure(FailedPrecondition, NotSent, PhaseNone, nil, "an interceptor opened the stream after it had returned: it must wait for next")
	case r.stream != nil:
		return failure(FailedPrecondition, NotSent, PhaseNone, nil, "an interceptor opened the stream a second time: it may do so only after an error")
	}
	return nil
}

// take gives an attempt that is about to be sent what observers learn of. The end of the stream,
// which may come at any time from then on, is the last use of it.
func (r *streamOpening) take(o *clientStream, failed []AttemptInfo) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fault := r.lateLocked(); fault != nil {
		return fault
	}
	if o.followed, r.followed = r.followed, nil; o.followed != nil {
		o.followed.by.picked.failed = failed
	}
	return nil
}

// giveBack takes it back from an attempt that was not sent.
func (r *streamOpening) giveBack(o *clientStream, fault *Error) {
	r.mu.Lock()
	followed := o.followed
	o.followed = nil
	if !r.over {
		r.followed, followed = followed, nil
	}
	r.mu.Unlock()
	if followed != nil {
		r.client.callEnded(followed, fault)
	}
}

// opened hands the stream over, unless it comes too late.
func (r *streamOpening) opened(st *stream) *Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fault := r.lateLocked()
	if fault == nil {
		r.stream = st
	}
	return fault
}

// streamOptions returns the options of a stream. Options of a call that do not apply to a stream
// are errors; the client's own are for its calls.
func (c *Client) streamOptions(opts []CallOption) (*callOptions, *Error) {
	own := callOptions{codec: c.o.call.codec, compression: c.o.call.compression, mode: c.o.call.mode, hashBy: c.o.call.hashBy, sides: c.o.call.sides}
	own.add(opts)
	if own.mistake != nil {
		return nil, badOption(own.mistake)
	}
	wrong := ""
	switch {
	case own.trailer != nil:
		wrong = "anser.Trailer: use the method Trailer of the stream"
	case own.idempotent, own.attempts != 0, own.retryOn != nil:
		wrong = "options about further attempts: a stream is never opened again by itself"
	}
	if own.pinned {
		wrong = "anser.At: a stream goes where the balancer sends it"
	}
	if fault := own.unsuitable(&c.o.call, "a stream", Failsafe, Failback, Backup, Fork); fault != nil {
		return nil, fault
	}
	if wrong != "" {
		return nil, failure(InvalidArgument, NotSent, PhaseNone, nil, "a stream cannot be opened with %s", wrong)
	}
	return &own, nil
}

// openThrough is the end of the chain of interceptors. The context that they pass on is for the
// opening; the stream outlives them. It opens the stream again when an interceptor retries.
func (r *streamOpening) openThrough(ctx context.Context, inv *Invocation) error {
	if fault := r.late(); fault != nil {
		return fault
	}
	if limit := r.client.o.call.timeout; limit != 0 {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = bounded
	}
	st, fault := r.attempts(ctx, inv)
	if fault != nil {
		fault.Method = inv.Method
		return fault
	}
	inv.Address = st.clientSide().endpoint.Instance().Address
	return nil
}

// attempts opens the stream at one instance after the other, as long as nothing of it was sent.
func (r *streamOpening) attempts(ctx context.Context, inv *Invocation) (*stream, *Error) {
	c := r.client
	m, err := c.method(inv.Method)
	if err != nil {
		var fault *Error
		errors.As(err, &fault)
		return nil, fault
	}
	o := &clientStream{client: c, method: m, sides: r.options.sides, end: r.end}
	empty, fault := r.encode(ctx, o, inv.Request)
	if fault != nil {
		return nil, fault
	}
	r.inside = inv.Request != nil && !empty
	further := attempts{c: c, o: r.options, m: m}
	e := c.pick(&o.call, m)
	for {
		if e != nil {
			if fault = r.take(o, further.list); fault != nil {
				return nil, fault
			}
			if fault = r.openAt(ctx, e, o); fault == nil {
				break
			}
			r.giveBack(o, fault)
		}
		if e, fault = further.next(ctx, &o.call, e, fault); fault != nil {
			return nil, fault
		}
	}
	st := o.call.stream
	if fault = r.opened(st); fault != nil {
		st.cancel(fault)
		return nil, fault
	}
	if empty {
		st.send(inv.Request) // an error is that of the stream, which Recv returns too
	}
	return st, nil
}

// openAt opens a stream at the endpoint. After an error nothing was sent.
func (r *streamOpening) openAt(ctx context.Context, e *endpoint, o *clientStream) *Error {
	k, plain := &o.call, o.call.frame
	k.began = mono.Now()
	e.Begin()
	conn, fault := e.Host.connForStream(ctx, k.settled || e.Lonely())
	if fault != nil {
		noteUnreached(e, fault)
		return fault
	}
	st := newStream(&conn.streams, o, r.codec, conn.host.maxMessage)
	if st.badMessage = Internal; r.inside {
		st.sent = 1
	}
	st.ctx, o.conn, o.endpoint = r.life, conn, e
	k.stream = st
	if fault = r.start(ctx, e, o); fault != nil {
		k.frame = plain
		conn.closeDedicated()
		return fault
	}
	k.frame = nil
	conn.ensureReader()
	st.bind(r.client)
	return nil
}

// start sends the REQUEST of a stream over the connection that was found for it.
func (r *streamOpening) start(ctx context.Context, e *endpoint, o *clientStream) (fault *Error) {
	k := &o.call
	if k.stream.packing, fault = r.compressRequest(o, o.conn); fault != nil {
		e.Abort()
		fault.Address, fault.RetryAfter = e.Instance().Address, RetryNever
		return fault
	}
	k.shrinkTimeout(r.life)
	if e.Host.observers.followMessages() {
		if fault = k.observe(ctx, e, o.method); fault != nil {
			return fault
		}
	}
	if fault = o.conn.start(ctx, k, &o.method.methodName); fault != nil {
		return k.settle(e, o.conn, o.method, fault)
	}
	return nil
}

// bind ends the stream with its context and with its client. It may have ended before.
func (st *stream) bind(c *Client) {
	unbind := context.AfterFunc(st.ctx, func() { st.cancel(streamContextFailure(st.ctx)) })
	c.mu.Lock()
	closed := c.closed
	if !closed {
		st.clientSide().unbind = unbind
		c.streams[st] = struct{}{}
	}
	c.mu.Unlock()
	switch {
	case closed:
		st.cancel(failure(Canceled, OutcomeUnknown, PhaseWait, nil, closedText))
	case st.hasEnded():
		st.release(c)
	}
}

const closedText = "the client was closed"

// release is the counterpart of bind, when the stream has ended.
func (st *stream) release(c *Client) {
	c.mu.Lock()
	unbind := st.clientSide().unbind
	st.clientSide().unbind = nil
	delete(c.streams, st)
	c.mu.Unlock()
	if unbind != nil {
		unbind()
	}
}

// endStreams ends the streams of a client that is being closed.
func (c *Client) endStreams() {
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.streams))
	c.mu.Unlock()
	for _, st := range open {
		st.cancel(failure(Canceled, OutcomeUnknown, PhaseWait, nil, closedText))
	}
}

// encode makes the REQUEST frame, with the first message if there is one. empty reports that the
// message has no bytes and must be sent by itself: within the frame it would be no message.
func (r *streamOpening) encode(ctx context.Context, o *clientStream, first any) (empty bool, fault *Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, NotSent, PhaseEncode, nil, "the codec panicked on %T: %v", first, p)
		}
	}()
	k, cd := &o.call, r.options.codec
	if cd == nil {
		if cd = r.client.codecFor(r.in, r.out); cd == nil {
			return false, failure(InvalidArgument, NotSent, PhaseEncode, nil, "no codec handles messages of the types %T and %T: choose one with anser.Codec", r.in, r.out)
		}
	}
	r.codec, k.codec = cd, cd.ID()
	if r.observe {
		k.traced = &r.chosen
	}
	if fault := r.client.encodeHead(ctx, k, o.method, r.options, wire.FlagStream); fault != nil {
		return false, fault
	}
	if first == nil {
		return false, k.setPickRequest(ctx, o.method, nil, r.options, nil)
	}
	frame, err := cd.Append(k.frame, first)
	if err != nil {
		return false, failure(InvalidArgument, NotSent, PhaseEncode, err, "encode the first message with %s: %v", cd.Name(), err)
	}
	k.frame = frame
	wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
	return len(frame) == int(k.head), k.setPickRequest(ctx, o.method, first, r.options, frame[k.head:])
}

// cancel ends the stream from this side, and tells the server unless the stream has ended there.
func (st *stream) cancel(fault *Error) {
	o := st.clientSide()
	fault = st.told(fault)
	taken, _ := o.conn.cancel(&o.call, isOver(st.ctx))
	st.stop(fault)
	if taken {
		o.over(st, fault)
	}
	o.end()
}

// over accounts for a stream that has stopped receiving; err is nil after success. The duration of
// a stream says nothing about the speed of its instance. The goroutine that took the stream out of
// its connection's table calls over.
func (o *clientStream) over(st *stream, err *Error) {
	o.conn.streaming.Add(-1)
	o.conn.upkeep.Stir()
	if err != nil && (err.Outcome == Refused || err.Outcome == OutcomeUnknown && err.Code == Unavailable) && !err.isOfRequest() {
		o.endpoint.Fail(mono.Now().Nanoseconds())
	} else {
		o.endpoint.Abort()
	}
	switch {
	case err != nil && err.Code == DeadlineExceeded: // how long a stream lasts is its caller's affair
	case err != nil:
		o.call.began = mono.Now()
		o.call.recordFailure(o.endpoint, nil, o.method, err)
	case o.endpoint.Counting():
		o.endpoint.Succeeded(&o.method.health, 0)
	}
	if o.call.observed != nil {
		o.observeEnd(err)
	}
	if o.followed != nil {
		o.followed.by.info.Address = o.endpoint.Instance().Address
		o.call.notePick(&o.followed.by.picked)
		o.client.callEnded(o.followed, asError(err))
	}
	st.release(o.client)
	o.conn.closeDedicated()
}

// observeEnd notifies the observers of the end of the stream.
func (o *clientStream) observeEnd(err *Error) {
	defer func() {
		if p := recover(); p != nil { // most likely the reader goroutine
			o.client.o.log.Error("an observer panicked on the end of a stream", "method", o.method.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	info := MessageInfo{Method: o.method.name, Address: o.endpoint.Instance().Address, Codec: o.call.codec}
	if err != nil {
		info.Err = err
	}
	o.endpoint.Host.observers.reply(o.call.observed, info)
}

// clientSide returns the client's state of its stream.
func (st *stream) clientSide() *clientStream { return st.side.(*clientStream) }

func (o *clientStream) complete(e *Error) {
	e.Method, e.Address = o.method.name, o.endpoint.Instance().Address
}

func (o *clientStream) refuse(st *stream, fault *Error) { st.cancel(fault) }

// received ends the context of the stream.
func (o *clientStream) received() { o.end() }

func (o *clientStream) hit(limit) {}

func (o *clientStream) lapse(st *stream) {
	if st.ctx.Err() != nil && !st.hasEnded() {
		st.cancel(streamContextFailure(st.ctx))
	}
}

func (o *clientStream) isClient() bool { return true }

// Close cancels the stream of a client; see [Stream.Close].
func (s *DynamicStream) Close() error { return s.st.closeOfClient() }

// closeOfClient cancels the stream of a client.
func (st *stream) closeOfClient() error {
	if !st.side.isClient() {
		return failure(FailedPrecondition, OutcomeUnknown, PhaseNone, nil, "a handler ends its stream by returning, not with Close")
	}
	st.cancel(failure(Canceled, OutcomeUnknown, PhaseWait, context.Canceled, "the stream was closed"))
	return nil
}

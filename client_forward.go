package anser

import (
	"context"
	"errors"
	"slices"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// forwardFlags are the flags of a REQUEST that is forwarded.
const forwardFlags = wire.FlagTrace | wire.FlagOneway | wire.FlagPlain | wire.FlagForced

// forward makes a call that a server forwards, whose message stays encoded. It is a future whose
// result goes to f.end: the call has a goroutine only where a future would have one. forward does
// not wait. ctx is that of the call at the server, which inherits nothing but what f has.
func (c *Client) forward(ctx context.Context, f forwarding) stopper {
	p := &pending{c: c, ctx: ctx, end: f.end, o: c.forwardOptions(&f)}
	if err := c.usable(ctx, f.method); err != nil {
		p.finish(err)
		return p
	}
	if c.o.observers.followCalls() {
		p.followed = c.callBegan(ctx, f.method, callKind{oneway: p.o.oneway, forward: true})
		ctx = p.followed.ctx
		p.ctx = ctx
	}
	switch {
	case p.o.mode == Failsafe || p.o.mode == Failback:
		p.finish(failure(FailedPrecondition, NotSent, PhaseNone, nil, "a client with the fail mode %s cannot forward calls: it makes replies of its own", p.o.mode))
		return p
	case c.intercepts(f.method) || p.o.mode > Failtry:
		p.forwardWaiting(&f)
		return p
	}
	m, err := c.method(f.method)
	if err != nil {
		p.finish(err)
		return p
	}
	k := c.pool.getStarted()
	k.began, k.fresh, k.pending, k.atOnce = mono.Now(), false, p, true
	p.k, p.m = k, m
	if p.followed != nil {
		k.traced = &p.followed.by
	}
	if fault := c.encodeForward(ctx, k, m, p.o, &f); fault != nil {
		fault.Method = f.method
		p.finish(fault)
		return p
	}
	c.budget.Deposit(k.slot)
	if p.o.oneway {
		p.forwardOneway()
		return p
	}
	if p.e = c.pick(k, m); p.e != nil {
		fault := p.start(ctx)
		if fault == nil {
			return p
		}
		if fault != errWouldWait {
			p.failed(fault)
			return p
		}
	}
	p.startForwardLater()
	return p
}

// forwardOptions returns the options of a call that is forwarded: those of the client, and what
// the caller says of its attempts.
func (c *Client) forwardOptions(f *forwarding) *callOptions {
	if !c.exists() || f.key == "" && f.request.Attempt == 0 && f.flags&wire.FlagOneway == 0 {
		return &c.o.call
	}
	o := c.o.call
	o.key, o.keyed, o.earlier, o.oneway = f.key, f.key != "", f.request.Attempt, f.flags&wire.FlagOneway != 0
	return &o
}

// encodeForward makes the REQUEST frame, as encodeHead does of a message.
func (c *Client) encodeForward(ctx context.Context, k *call, m *clientMethod, o *callOptions, f *forwarding) (fault *Error) {
	k.codec = f.request.Codec
	k.settled = !o.mode.elsewhere()
	k.mover = nil
	if f.request.Attempt == 0 && m.mayRunTwice(o) && !k.settled && o.attempts > 1 {
		k.mover = c
	}
	left := min(o.timeout, maxTimeout)
	if k.deadline = f.deadline; k.deadline != 0 {
		left = k.deadline.Sub(k.began)
	} else if left != 0 {
		k.deadline = k.began.Add(left)
	}
	if c.router != nil {
		if k.route, fault = c.route(ctx, m.name, metadataOf(f.request.Metadata)); fault != nil {
			return fault
		}
	}
	r := f.request
	r.Payload, r.Timeout = nil, 0
	flags := f.flags & forwardFlags
	if k.traced != nil {
		if t, ok := k.traced.traceOf(ctx); ok {
			r.Trace = t
			flags |= wire.FlagTrace
		}
		k.traced = nil
	}
	if k.deadline != 0 {
		if left <= 0 {
			return failure(DeadlineExceeded, NotSent, PhaseEncode, context.DeadlineExceeded, "the call's time was over before it was forwarded")
		}
		r.Timeout = wireTimeout(left)
	}
	k.frame = wire.AppendRequest(k.frame[:0], 0, flags, &r)
	k.head = int32(len(k.frame))
	payload := f.request.Payload
	if k.compression = nil; r.Compression != 0 { // the frame is completed when the server is known
		k.compression = &compression{compressor: f.compressor, received: f.flags&wire.FlagPlain == 0, forwarded: true}
		k.plain = codec.AppendInPieces(k.plain[:0], payload)
	} else {
		k.frame = codec.AppendInPieces(k.frame, payload)
		wire.PutLength(k.frame, uint32(len(k.frame)-wire.HeaderSize))
		payload = k.frame[k.head:]
	}
	return k.setForwardPick(ctx, m, o, f, payload)
}

// setForwardPick sets what balancers learn about the call. By default calls with the same
// idempotency key go to the same instance where the balancer is one that keeps keys together.
func (k *call) setForwardPick(ctx context.Context, m *clientMethod, o *callOptions, f *forwarding, payload []byte) (fault *Error) {
	if o.hashBy == nil {
		k.pick.Key, k.pick.Payload = o.hashKey, payload
	} else {
		message := slices.Clone(payload)
		fault = k.setPickRequest(ctx, m, &message, o, payload)
	}
	if k.pick.Key == 0 && f.key != "" {
		k.pick.Key = balance.Hash(f.key)
	}
	return fault
}

// compressForward completes the frame of a call that is forwarded, whose message came compressed
// or whose reply may be. A server that does not have the algorithm gets the message uncompressed.
func (k *call) compressForward(c *callerHalf) *Error {
	z := k.compression
	k.frame = k.frame[:k.head]
	flags, id := wire.Flags(k.frame[flagsOffset])&^wire.FlagPlain, z.compressor.ID()
	switch {
	case c.peer.Understands(id):
		if k.frame = append(k.frame, k.plain...); !z.received {
			flags |= wire.FlagPlain
		}
	case !z.received:
		id, flags = 0, flags&^wire.FlagForced
		k.frame = append(k.frame, k.plain...)
	case isOpaque(z.compressor):
		return failure(Unimplemented, NotSent, PhaseEncode, nil, "neither the server nor what it forwards calls to has the compression %d", id)
	default:
		var err *unpackError
		if k.frame, err = unpack(k.frame, k.plain, z.compressor, c.host.maxMessage, c.host.maxExpansion, true); err != nil {
			return failure(err.code, NotSent, PhaseEncode, err.cause, "the request: %s", err.text)
		}
		id, flags = 0, flags&^wire.FlagForced
	}
	k.frame[flagsOffset], k.frame[requestCompressionOffset] = byte(flags), id
	wire.PutLength(k.frame, uint32(len(k.frame)-wire.HeaderSize))
	return nil
}

// startForwardLater begins the call on a goroutine, because it must wait before it can be sent. If
// there are too many such goroutines, the call is refused: the goroutine that reads the requests of
// a client must not wait for one server.
func (p *pending) startForwardLater() { p.waitElsewhere(func() { p.proceed(nil) }) }

// waitElsewhere runs f on a goroutine, unless too many calls have one.
func (p *pending) waitElsewhere(f func()) {
	select {
	case p.c.startingLater <- struct{}{}:
	default:
		p.finish(failure(ResourceExhausted, NotSent, PhaseDial, nil, "%d calls wait for a connection to %q already", maxStartingLater, p.c.serviceName()))
		return
	}
	go func() {
		defer func() { <-p.c.startingLater }()
		f()
	}()
}

// forwardOneway forwards a message that gets no reply.
func (p *pending) forwardOneway() {
	k, m, ctx := p.k, p.m, p.ctx
	k.pending, k.oneway = nil, true // no attempt has an end
	end := func(fault *Error) {
		k.oneway = false
		if fault != nil {
			p.finish(fault)
			return
		}
		p.finish(nil)
	}
	e := p.c.pick(k, m)
	var fault *Error
	if e != nil {
		if fault = k.attempt(ctx, e, m); fault == nil {
			end(nil)
			return
		}
	}
	p.waitElsewhere(func() {
		k.atOnce = false
		end((&attempts{c: p.c, o: p.o, m: m}).run(ctx, k, e, fault))
	})
}

// forwardWaiting makes a call through interceptors, or with several attempts at once, on a
// goroutine of its own.
func (p *pending) forwardWaiting(f *forwarding) {
	in, out := slices.Clone(f.request.Payload), new([]byte)
	if f.request.Compression != 0 && f.flags&wire.FlagPlain == 0 {
		plain, err := unpack(nil, in, f.compressor, p.c.o.maxMessage, p.c.o.maxExpansion, true)
		if err != nil {
			p.finish(failure(err.code, NotSent, PhaseEncode, err.cause, "the request: %s", err.text))
			return
		}
		in = plain
	}
	o := *p.o
	o.codec, o.compression, o.trailer = opaqueCodec(f.request.Codec), nil, new(Metadata)
	p.o, p.out = &o, out
	ctx := f.carry(p.ctx)
	l := &laterAttempts{}
	l.ctx, l.cancel = context.WithCancel(ctx)
	p.mu.Lock()
	p.later = l
	p.mu.Unlock()
	name := f.method
	go func() { p.finish(p.c.callWithMode(l.ctx, name, &in, out, &o, p.by())) }()
}

// report forwards the result of the call. It is the last use of the call.
func (p *pending) report() {
	p.mu.Lock()
	k, err := p.k, p.err
	p.k = nil
	p.mu.Unlock()
	var r forwardReply
	var fault *Error
	if err != nil {
		if fault, _ = errors.AsType[*Error](err); fault == nil { // of an interceptor
			fault = failure(CodeOf(err), OutcomeUnknown, PhaseNone, err, "%v", err)
		}
	}
	switch {
	case k != nil && fault == nil:
		r = forwardReply{codec: k.codec, flags: k.flags, trailers: k.trailers, payload: k.reply()}
		if k.packed {
			r.compression = k.frame[requestCompressionOffset]
		}
	case k != nil && fault.Remote:
		r.flags, r.trailers = k.flags, k.trailers
	case k == nil && p.out != nil:
		r.trailers, _ = encodeMetadata(*p.o.trailer)
		r.codec, r.payload = p.o.codec.ID(), *p.out.(*[]byte)
	}
	p.end.forwarded(r, fault)
	if k != nil {
		p.c.pool.putStarted(k)
	}
}

// openForward opens a stream that a server forwards. It returns when the stream has a connection.
// The messages follow on the stream, the first one too.
func (c *Client) openForward(ctx context.Context, f forwarding) (*stream, error) {
	if err := c.usable(ctx, f.method); err != nil {
		return nil, err
	}
	asReceived := callOption(func(o *callOptions) {
		o.codec, o.earlier, o.compression = opaqueCodec(f.request.Codec), f.request.Attempt, nil
		if f.request.Compression != 0 {
			o.compression = &compression{compressor: f.compressor, forwarded: true}
			if f.flags&wire.FlagForced != 0 {
				o.compression.mode = Forced
			}
		}
	})
	r := streamOpening{client: c, method: f.method, forward: true}
	return r.open(f.carry(ctx), []CallOption{asReceived})
}

// carry returns a context whose calls have the metadata of the call, without the idempotency key,
// which is an option.
func (f *forwarding) carry(ctx context.Context) context.Context {
	if f.request.Metadata == nil {
		return ctx // which makes a derived context cheaper
	}
	return WithMetadata(ctx, metadataOf(f.request.Metadata))
}

// compressForward completes the REQUEST of a stream that is forwarded, and returns the compression
// that its messages may have. A server that does not have the algorithm gets them uncompressed.
func (r *streamOpening) compressForward(o *clientStream, conn *callerHalf) (*streamPacking, *Error) {
	z := r.options.compression
	switch id := z.compressor.ID(); {
	case conn.peer.Understands(id):
		frame := slices.Clone(o.call.frame)
		frame[requestCompressionOffset] = id
		frame[flagsOffset] |= byte(wire.FlagPlain)
		if z.mode == Forced {
			frame[flagsOffset] |= byte(wire.FlagForced)
		}
		o.call.frame = frame
		return &streamPacking{compression: *z, gain: o.method.gains.Of(z.compressor), times: conn.host.maxExpansion}, nil
	case isOpaque(z.compressor):
		return nil, failure(Unimplemented, NotSent, PhaseEncode, nil, "neither the server nor what it forwards calls to has the compression %d", id)
	}
	return nil, nil
}

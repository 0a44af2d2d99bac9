package anser

import (
	"context"
	"sync"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// ProtocolRequest is a call that arrived over a [ProtocolConn].
type ProtocolRequest struct {
	// Method is the name of a method, or one of its aliases.
	Method string
	// Metadata is the metadata of the call, or nil. It is copied.
	Metadata Metadata
	// Trace is the span of the caller; the zero value means none.
	Trace Trace
	// Priority says which calls are shed first; see [Priority]. The zero value is Sheddable, so a
	// protocol without priorities sets Normal.
	Priority Priority
	// Attempt is the number of the caller's attempt, from 0.
	Attempt int
	// Deadline is when the caller gives up; the zero value means never.
	Deadline time.Time
	// Arrived is when the whole request had arrived, from which [MaxQueueTime] counts; the zero
	// value means now.
	Arrived time.Time
	// Size is the length of the encoded message in bytes, for [MaxMessage], [MaxMemory] and
	// observers.
	Size int
	// Codec is the codec of the messages if the server has it, for [OnlyCodecs] and
	// [Invocation.Codec]; else nil.
	Codec codec.Codec
	// Oneway says that the caller gets no reply.
	Oneway bool
	// IdempotencyKey is the key by which a server with [Deduplicate] recognizes the call, or "". A
	// call with a key needs a Codec and [ProtocolCall.Identify], and it should not be cancelled
	// because its connection is lost: its caller comes back for the reply.
	IdempotencyKey string
	// Repeated says that an earlier call with the IdempotencyKey may have run. If the server does
	// not know the key any more, or never did, it refuses the call with the outcome Unknown.
	Repeated bool
	// Stream says that the call is run with [ProtocolCall.RunStream]. It must be set for the
	// methods that are streams, and for no others; see [Server.Method].
	Stream bool
	// Values provides the values of the handler's context; nil has none.
	Values context.Context
}

// ProtocolReply ends a call that arrived over a [ProtocolConn].
type ProtocolReply struct {
	// Message is the reply of the handler, a pointer; nil with an error and for a Oneway call.
	Message any
	// Err is the error of the call, or nil. The error that a handler returned is wrapped in it.
	Err *Error
	// Trailers are the trailers that the handler set with [SetTrailer], or nil.
	Trailers Metadata
}

// ProtocolCall is a call that a server has admitted. It ends with Run, RunStream or Refuse, one of
// which must be called, even if decoding the message panics or the connection has ended: until then
// the call counts for the limits of the server. Only the first call of them has an effect.
type ProtocolCall struct {
	conn     *ProtocolConn
	ctx      *callContext // storage, which with extras saves two allocations per call
	storage  callContext
	extras   callExtras
	size     int
	held     int // bytes that the server's memory counts
	arrived  mono.Time
	codec    codec.Codec
	values   context.Context
	sum      *uint64 // of the request of a call with a key; nil: not known yet
	repeated bool

	stream *foreignStream // nil: the method is not a stream

	// Owned by the goroutine that runs the call.
	request  any
	reply    any
	fault    *Error
	unread   int // bytes of the reply that HoldReply counts
	expected int // bytes of the reply that are expected, of a call that has waited

	mu        sync.Mutex // guards the fields below, and the carrier of stream
	ending    bool       // Run, RunStream or Refuse was called
	respond   func(ProtocolReply) error
	answered  bool // nothing is passed to respond any more
	cancelled bool
	cut       *Error // why the call was cut off
}

// Admit decides whether a call may run, before its message is decoded. It applies the checks of
// calls over Anser's own protocol, in the same order: the identity and the [Authorizer], the
// method and its codecs, the limits of message, metadata, method, server, memory and connection,
// and the deadline. A call that is refused is counted. The error is for its caller: its Code and
// Message say why. It is shared and must not be changed. Admit may be called by several
// goroutines. It returns at once, except that it may call the Authorizer.
func (p *ProtocolConn) Admit(r *ProtocolRequest) (*ProtocolCall, *Error) {
	if r == nil {
		return nil, errNilRequest
	}
	now := mono.Now()
	n, refused := p.lookUp(r, now)
	var metadata []byte
	if refused == nil {
		metadata, refused = p.check(r, &n)
	}
	arrived := now
	if !r.Arrived.IsZero() {
		arrived = arrived.Add(-max(time.Since(r.Arrived), 0))
	}
	var taken uint8
	if refused == nil && n.method.limits != nil {
		taken, refused = n.method.limits.admit(min(r.Priority, Critical), now.Sub(arrived))
	}
	if refused != nil {
		p.conn.server.refused(nil, n.method, refused)
		return nil, refused
	}
	if n.alias != nil {
		n.alias.uses.Add(1)
	}
	k := p.newCall(r, n.method, metadata, arrived)
	k.ctx.priority |= taken
	if k.ctx.expired(now) {
		refused = errExpired
	} else {
		refused = p.take(k, r)
	}
	if refused == nil {
		p.began()
	} else {
		k.ctx.releaseLimits()
		p.conn.server.refused(k.ctx, n.method, refused)
		return nil, refused
	}
	if p.conn.auth != nil {
		p.conn.confirm(&n, k.ctx)
	}
	return k, nil
}

// take adds the call, or returns why it cannot run.
func (p *ProtocolConn) take(k *ProtocolCall, r *ProtocolRequest) (refused *Error) {
	if r.Stream {
		if refused = p.conn.openForeign(); refused != nil {
			return refused
		}
		k.stream = new(foreignStream)
	}
	if k.held, refused = p.conn.take(k.ctx, r.Size); refused != nil && r.Stream {
		p.conn.closeForeign()
	}
	return refused
}

// lookUp returns the method of a request, or why its client may not call it.
func (p *ProtocolConn) lookUp(r *ProtocolRequest, now mono.Time) (n named, refused *Error) {
	c := p.conn
	p.names.Lock()
	defer p.names.Unlock()
	known := p.methods[r.Method]
	if known != nil {
		if c.server.table.resolve(known); known.method == nil {
			delete(p.methods, r.Method) // it was removed
		}
	} else {
		known = &named{name: r.Method, looked: ^uint64(0), foreign: true}
		c.server.table.resolve(known)
		if known.method != nil { // else a client could fill the memory with names
			if p.methods == nil {
				p.methods = make(map[string]*named)
			}
			p.methods[r.Method] = known
		}
	}
	if c.auth != nil {
		refused = c.authorize(now, known)
	}
	return *known, refused
}

var (
	errNilRequest = refusal(InvalidArgument, "the request is nil")
	errRefused    = refusal(Unknown, "the protocol refused the call and gave no reason")
	errDraining   = refusal(Unavailable, "the connection is draining: make the call on another one")
)

// check returns why the request cannot run, or its metadata as a block.
func (p *ProtocolConn) check(r *ProtocolRequest, n *named) (metadata []byte, refused *Error) {
	srv := p.conn.server
	switch {
	case n.method == nil && srv.o.authorizer != nil:
		// A hint would reveal methods that the caller may not know.
		return nil, refusal(Unimplemented, "the method is not served here")
	case n.method == nil:
		return nil, p.unknown(r.Method)
	case n.method.converse != nil && !r.Stream:
		return nil, refusal(Unimplemented, "method %q is a stream, which this protocol does not carry", r.Method)
	case n.method.converse == nil && r.Stream:
		return nil, refusal(Unimplemented, "method %q is not a stream", r.Method)
	case n.method.only != nil && (r.Codec == nil || !n.method.only[r.Codec.ID()]):
		return nil, refusal(Unimplemented, "method %q does not take the codec of this protocol: it takes %s", r.Method, srv.codecNames(n.method.only))
	case r.IdempotencyKey != "":
		if refused := srv.checkKey(r, n.method); refused != nil {
			return nil, refused
		}
	}
	switch {
	case r.Size > srv.o.maxMessage:
		return nil, srv.tooLarge(r.Size)
	case p.draining(): // checked again when the call is added; here it comes before the limits
		return nil, errDraining
	case len(r.Metadata) == 0:
		return nil, nil
	}
	metadata, err := encodeMetadata(r.Metadata)
	if err != nil {
		return nil, refusal(CodeOf(err), "%v", err).WithRetryAfter(RetryNever)
	}
	if most := srv.settings.MaxMetadata; uint64(len(metadata)) > most {
		return nil, over(limitMetadata, "the metadata of %d bytes is over the limit of %d", len(metadata), most).WithRetryAfter(RetryNever)
	}
	return metadata, nil
}

// unknown returns the refusal of a method that is not served. Looking for a hint can cost more
// than the rest of a request, so only the first such requests get one.
func (p *ProtocolConn) unknown(name string) *Error {
	here, hint := "here", ""
	if p.conn.server.o.forwarder != nil {
		here = "here, nor forwarded over this protocol"
	}
	if len(name) > wire.MaxMethodName {
		name = name[:wire.MaxMethodName] + "…"
	} else if p.hints.Add(1) <= maxHints {
		hint = p.conn.server.suggest(name, true)
	}
	return refusal(Unimplemented, "method %q is not served %s%s", name, here, hint)
}

// newCall makes the call of a request.
func (p *ProtocolConn) newCall(r *ProtocolRequest, m *method, metadata []byte, arrived mono.Time) *ProtocolCall {
	k := &ProtocolCall{conn: p, size: r.Size, arrived: arrived, codec: r.Codec, values: r.Values, repeated: r.Repeated}
	ctx := &k.storage
	ctx.conn, ctx.method, ctx.extras, ctx.id = &p.conn.calleeHalf, m, &k.extras, p.lastID.Add(1)
	ctx.attempt, ctx.priority, ctx.oneway = uint8(min(max(r.Attempt, 0), 255)), uint8(min(r.Priority, Critical)), r.Oneway
	k.extras.metadata, k.extras.protocol, k.extras.key = metadata, k, r.IdempotencyKey
	if isTrace(&r.Trace) {
		ctx.trace = &heldTrace{Trace: r.Trace}
	}
	if r.Codec != nil {
		ctx.codec = r.Codec.ID()
	}
	if !r.Deadline.IsZero() {
		ctx.deadline = mono.Now().Add(min(time.Until(r.Deadline), maxTimeout))
	}
	k.ctx = ctx
	return k
}

// Context returns the context of the handler. It ends when the handler has returned, and before
// that when the caller cancels, the deadline passes, the connection ends, or the client is no
// longer allowed to make the call.
func (k *ProtocolCall) Context() context.Context { return k.ctx }

// NewRequest returns a pointer to a new message to decode the request into.
func (k *ProtocolCall) NewRequest() any { return k.ctx.method.newRequest() }

// Received records that the message has size bytes, for protocols that learn the size after Admit.
// It is not for the messages of streams. The error says why the call cannot run; pass it to Refuse.
func (k *ProtocolCall) Received(size int) *Error {
	srv := k.conn.conn.server
	if size > srv.o.maxMessage {
		return srv.tooLarge(size)
	}
	if size > max(smallRequest, k.held) {
		if !srv.memory.Take(size - k.held) {
			return srv.outOfMemory(size)
		}
		k.held = size
	}
	k.size = size
	return nil
}

// HoldReply counts n bytes of the reply that wait until the client has read earlier ones, until the
// function given to Run returns; only that function calls it. stalled is how long the client has
// taken nothing of what is written to it. The error takes the place of the reply: the client has
// left too much unread; see [MaxMemory]. Later calls of the method wait before their handlers while
// there is much. It is for protocols that have several calls of a connection at once and write the
// replies in turns, and not needed for a reply whose turn it is.
func (k *ProtocolCall) HoldReply(n int, stalled time.Duration) *Error {
	c, m := k.conn.conn, k.ctx.method
	if n <= smallRequest {
		return nil
	}
	m.large.Store(true)
	if !c.unread.Hold(n, stalled < readsWithin) {
		return c.server.leftUnread(n)
	}
	k.unread += n
	k.known()
	return nil
}

// known records that the reply is known that was expected.
func (k *ProtocolCall) known() {
	if k.expected != 0 {
		k.conn.conn.unread.Known(k.expected)
		k.expected = 0
	}
}

// endReply ends HoldReply: the reply is written, or dropped.
func (k *ProtocolCall) endReply() {
	k.known()
	if k.unread != 0 {
		k.conn.conn.unread.Release(k.unread)
		k.unread = 0
	}
}

// Cancel ends the context of the handler because the caller has given up. The result of the
// handler is still passed to the function given to Run.
func (k *ProtocolCall) Cancel() {
	k.mu.Lock()
	over := k.answered || k.cancelled
	k.cancelled = true
	k.mu.Unlock()
	if !over {
		k.conn.conn.server.stats.cancelled.Add(1)
		k.ctx.end(context.Canceled)
	}
}

// Refuse ends a call that does not run, such as one whose message could not be decoded. The
// server counts the reason, and sends no answer: the protocol does.
func (k *ProtocolCall) Refuse(why *Error) {
	if _, first := k.begin(nil); !first {
		return
	}
	if why == nil {
		why = errRefused
	}
	c := k.conn.conn
	c.server.refused(k.ctx, k.ctx.method, why)
	k.mu.Lock()
	k.answered = true
	k.mu.Unlock()
	c.server.memory.Give(k.held)
	c.finishDetached(k.ctx, nil, lentReply{})
}

// Run makes the server run the handler with the message, which must be the result of NewRequest,
// and returns at once. respond is called once with the reply, on a goroutine of the server, and
// may wait until the client has read earlier replies. It is called for a Oneway call too, with
// the zero reply or an error, and after End; nil is allowed. It must not panic, although the
// encoding of a message with its own encoder may. An error of respond means that the message
// could not be encoded, and counts as an error of the method. If the call is cut off because its
// client is no longer allowed to make it, respond gets that error at once, although the handler
// may still run.
func (k *ProtocolCall) Run(message any, respond func(ProtocolReply) error) {
	if k.stream != nil {
		k.misuse("Run", respond)
		return
	}
	cut, first := k.begin(respond)
	if !first {
		return
	}
	k.request = message
	j := newJob(k.ctx, k.arrived)
	j.codec, j.held, j.refused = k.codec, k.held, cut
	if g := k.ctx.method.limits; g != nil && g.queue != nil && cut == nil {
		g.queue.enter(j)
		return
	}
	j.start()
}

// begin records that the call ends, with the function that gets the reply, and reports whether it
// is the first time. cut is why the call was cut off before, or nil.
func (k *ProtocolCall) begin(respond func(ProtocolReply) error) (cut *Error, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending {
		k.conn.conn.server.log.Error("another protocol has ended a call twice", "method", k.ctx.method.name)
		return nil, false
	}
	k.ending, k.respond = true, respond
	if k.cut != nil {
		k.answered = false // a worker refuses the call, and end answers it
	}
	return k.cut, true
}

// cutOff answers a call that its client is no longer allowed to make.
func (k *ProtocolCall) cutOff(why *Error) {
	k.mu.Lock()
	respond, answered := k.respond, k.answered
	k.answered, k.cut = true, why
	k.mu.Unlock()
	if respond != nil && !answered {
		k.conn.tell(func() {
			if st := k.stream; st != nil { // the protocol must not end the stream while it sends a message
				st.stop(why)
				st.sending.Lock()
				defer st.sending.Unlock()
				st.taking.Lock()
				defer st.taking.Unlock()
			}
			respond(ProtocolReply{Err: why})
		})
	}
}

// end passes the reply to the protocol, unless the call was cut off or refused, and removes the
// call from the table after that: a drain must not close the connection in between. The encoder of
// a message may end the goroutine, by runtime.Goexit.
func (k *ProtocolCall) end() {
	defer k.remove()
	defer k.endReply()
	k.mu.Lock()
	respond := k.respond
	if k.answered {
		respond = nil
	}
	k.answered = true
	k.mu.Unlock()
	if respond != nil {
		r := ProtocolReply{Message: k.reply, Err: k.fault}
		k.reply = nil // so that a reply that is dropped takes no memory while its error waits
		if block := k.ctx.trailers(); block != nil {
			r.Trailers = metadataOf(block)
		}
		if err := respond(r); err != nil && k.fault == nil {
			k.ctx.method.failed.Add(1)
		}
	}
}

func (k *ProtocolCall) remove() {
	c := k.conn.conn
	k.conn.finished()
	if k.stream != nil {
		c.closeForeign()
	}
	c.mu.Lock()
	c.detached--
	c.running.Take(k.ctx.id)
	c.mu.Unlock()
}

// protocolCall returns the data of a call over another protocol, or nil.
func (c *callContext) protocolCall() *ProtocolCall {
	if c.extras == nil {
		return nil
	}
	return c.extras.protocol
}

package anser

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// call is one open attempt, and the buffers for all attempts of a call. It is pooled.
//
// The fields are in the order of their use: the reader goroutine touches the first two cache lines,
// and with many callers it must fetch them for every reply. A caller that got its reply needs two
// more, and of the rest nothing. See decision 31.
type call struct {
	done    chan struct{} // receives one value when the attempt is over
	pending attemptEnd    // of a call without a waiting goroutine: notified in place of done
	id      uint64        // written by start under the connection's lock
	stream  *stream       // opened by the call, or nil

	// Owned by the caller before start. The goroutine that takes the call out of the pending table
	// writes the reply, before done.
	frame []byte // the whole REQUEST frame, until the reply replaces its message; dress completes the frame of a call with compression

	failed      *Error       // why there is no reply; nil if there is one
	compression *compression // nil: no compression
	trailers    []byte
	slot        uint32     // random, spreads calls over connections
	head        int32      // bytes of frame before the message
	codec       uint8      // of the request, and so of the reply
	flags       wire.Flags // of the reply
	packed      bool       // the reply is compressed
	patient     bool       // the caller waits for nothing but the reply
	oneway      bool       // no reply follows
	fresh       bool       // the reply is decoded into a zero value
	atOnce      bool       // an attempt fails if it would need to wait for a connection or for room
	settled     bool       // the call goes only to the endpoint that was picked
	early       bool       // the call may go out with the first bytes of a connection; see earlyCall
	again       bool       // the call has a key and may have run
	lends       bool       // its caller waits, so a large request need not be copied
	unsure      bool       // an attempt had an unknown outcome; see sent
	late        bool       // the attempt began after the call, at began
	sampled     bool       // of a call with a trace context in chosen: it has the flag "sampled"

	// Used by the caller only.
	deadline mono.Time // 0: none
	began    mono.Time // the attempt
	begin    uint64    // the writer's appended count before the frame; written like id
	loan     *loan     // of lent to the connection of the attempt, or nil
	large    []byte    // the frame of a large reply, from bufpool.GetFrame, or nil: frame has the reply
	largeAt  int       // where its payload begins

	observed context.Context // of an attempt reported to observers
	route    *Route          // the router's choice of instances; nil: all
	traced   traced          // what chose its trace context, until its request is encoded; or nil
	lent     []byte          // a large encoded request, which is not in frame; or nil

	mover  mover     // of a call that may move to another instance if its own falls silent; else nil
	sent   keptKey   // of the last attempt with an unknown outcome, if unsure is set
	kept   keptKey   // where a call with a key may go, if again is set
	opened mono.Time // when the call began, if late is set
	_      [8]byte   // what is chosen is in one cache line, nearly

	chosen tracedCall      // of a call that is measured, if an observer chooses trace contexts
	pick   balance.Request // passed to balancers
	plain  []byte          // of a call with compression: first the encoded request, later the decompressed reply
	// encoded is the buffer of lent, which is frame's otherwise; nil if it is the caller's.
	encoded []byte
}

// opening returns when the call began.
func (k *call) opening() mono.Time {
	if k.late {
		return k.opened
	}
	return k.began
}

// beginLate makes now the beginning of the attempt, and not of the call.
func (k *call) beginLate(now mono.Time) {
	if !k.late {
		k.opened, k.late = k.began, true
	}
	k.began = now
}

// attemptEnd is a future, whose attempts no goroutine waits for.
type attemptEnd interface {
	startOn(conn *callerHalf) // before the attempt is sent
	attemptDone()             // on the reader goroutine
}

// mover is the client of a call that may move to another instance.
type mover interface {
	// move reports whether a call of the route that waits at a silent host can be made elsewhere,
	// and takes it from the budget if so.
	move(route *Route, from *host, now mono.Time) bool
}

// reply returns the payload of the reply, once it has arrived.
func (k *call) reply() []byte {
	if k.large != nil {
		return k.large[k.largeAt:]
	}
	return k.frame[k.head:]
}

func (k *call) CallID() uint64 { return k.id }

// getCall returns a call with its own channel. Each pool of connections has its own pool of calls,
// because a channel made inside a synctest bubble must not be used outside of it.
func (p *pool) getCall() *call {
	if k, ok := p.calls.Get().(*call); ok {
		return k
	}
	return &call{done: make(chan struct{}, 1), slot: rand.Uint32()}
}

func (p *pool) putCall(k *call) {
	k.clear()
	p.calls.Put(k)
}

// getStarted returns a call for a future; it has no channel.
func (p *pool) getStarted() *call {
	if k, ok := p.started.Get().(*call); ok {
		return k
	}
	return &call{slot: rand.Uint32()}
}

func (p *pool) putStarted(k *call) {
	k.clear()
	k.pending = nil
	p.started.Put(k)
}

func (p *pool) getWaiter() chan struct{} {
	if w, ok := p.waiters.Get().(chan struct{}); ok {
		return w
	}
	return make(chan struct{}, 1)
}

// over notifies the waiting goroutine, or the future, that the attempt has ended.
func (k *call) over() {
	if k.pending != nil {
		k.pending.attemptDone()
		return
	}
	k.done <- struct{}{}
}

// clear drops what the next call must not see.
func (k *call) clear() {
	if k.large != nil {
		bufpool.PutFrame(k.large)
		k.large = nil
	}
	if k.lent != nil || k.compression != nil || cap(k.frame) > maxKeptMessage {
		k.dropMessage()
	}
	k.failed, k.trailers, k.route, k.traced = nil, nil, nil, nil
	k.fresh, k.again, k.lends, k.unsure, k.late = false, false, false, false, false
}

// dropMessage drops a request that is not in frame, or that is too large to be kept.
//
//go:noinline
func (k *call) dropMessage() {
	if k.encoded != nil {
		k.frame, k.encoded = k.encoded, nil
	}
	k.lent, k.pick.Payload = nil, nil
	if cap(k.frame) > maxKeptMessage {
		k.frame = nil
	}
	if cap(k.plain) > maxKeptMessage {
		k.plain = nil
	}
}

// accept stores the reply for k, whose payload may have up to limit bytes. An error is an error of
// the connection. rd is the reader that returned a large reply.
func (k *call) accept(a *arrived, limit int, rd *reader) error {
	k.flags = a.flags
	if a.kind == wire.TypeError {
		e, err := wire.ParseError(a.flags, a.body)
		if err != nil {
			return err
		}
		k.failed = remoteError(&e)
		_, err = k.acceptTrailers(e.Metadata)
		return err
	}
	r, err := wire.ParseReply(a.flags, a.body)
	if err != nil {
		return err
	}
	fault, err := k.acceptTrailers(r.Metadata)
	if err != nil {
		return err
	}
	k.failed = nil
	switch {
	case r.Codec != k.codec:
		k.failed = failure(Internal, OutcomeUnknown, PhaseDecode, nil, "the reply has the codec %d, the request had %d", r.Codec, k.codec)
	case r.Compression != 0 && !k.asked(r.Compression):
		k.failed = failure(Internal, OutcomeUnknown, PhaseDecode, nil, "the reply has the compression %d, which the request did not name", r.Compression)
	case len(r.Payload) > limit && r.Compression == 0:
		k.failed = failure(ResourceExhausted, Executed, PhaseDecode, nil, "the reply of %d bytes is over the limit of %d: %s, or ask for less", len(r.Payload), limit, raiseOn(true))
	case fault != nil:
		k.failed = failure(Internal, Executed, PhaseDecode, fault, "the trailers of the reply: %v", fault)
	default:
		k.packed = r.Compression != 0
		if a.large {
			k.large = rd.takeLarge()[:wire.HeaderSize+len(a.body)]
			k.largeAt = len(k.large) - len(r.Payload)
			break
		}
		// Nothing is sent again after a reply. With many callers, a second buffer per call would
		// not stay in the cache.
		k.frame = codec.AppendInPieces(k.frame[:k.head], r.Payload)
	}
	return nil
}

// acceptTrailers stores a metadata block if it is valid. fault reports an invalid entry; err, an
// error of the connection, reports a broken structure.
func (k *call) acceptTrailers(block []byte) (fault *wire.CallError, err error) {
	if block == nil {
		return nil, nil
	}
	_, err = wire.ParseMetadata(block, wire.DefaultSettings().MaxMetadata)
	if fault, ok := err.(*wire.CallError); ok { // errors.As would allocate for every reply
		return fault, nil
	}
	if err == nil {
		k.trailers = slices.Clone(block)
	}
	return nil, err
}

// asked reports whether the reply of the call may have the compression.
func (k *call) asked(compression uint8) bool {
	return k.compression != nil && k.frame[requestCompressionOffset] == compression
}

// unpackReply returns the payload of a compressed reply. It runs on the caller's goroutine.
func (k *call) unpackReply(h *host) ([]byte, *Error) {
	out, err := unpack(k.plain[:0], k.reply(), k.compression.compressor, h.maxMessage, h.maxExpansion, true)
	k.plain = out
	if err != nil {
		code := err.code
		if code == InvalidArgument { // not the caller's argument: the server sent the payload
			code = Internal
		}
		return nil, failure(code, Executed, PhaseDecode, err.cause, "the reply: %s", err.text)
	}
	return out, nil
}

// shrinkTimeout tells the server how much time is left now, if the call or ctx has a deadline.
func (k *call) shrinkTimeout(ctx context.Context) {
	left, bounded := maxTimeout, k.deadline != 0
	if bounded {
		left = mono.Until(k.deadline)
	}
	if d, ok := ctx.Deadline(); ok {
		left, bounded = min(left, time.Until(d)), true
	}
	if bounded {
		putUint64(k.frame[timeoutOffset:], wireTimeout(left))
	}
}

// wireTimeout is the remaining time as it is sent: in microseconds, rounded up. A time that has
// passed becomes the shortest one, since 0 means no limit.
func wireTimeout(left time.Duration) uint64 {
	left = min(max(left, 1), maxTimeout)
	return uint64((left + time.Microsecond - 1) / time.Microsecond)
}

// bound returns a context that ends at the deadline of the call.
func (k *call) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return boundBy(ctx, k.deadline)
}

// boundBy returns a context that ends at a time, unless that is 0.
func boundBy(ctx context.Context, until mono.Time) (context.Context, context.CancelFunc) {
	if until == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, mono.Until(until))
}

// errWouldWait is returned for an attempt of a future that may start only without waiting.
var errWouldWait = failure(Unavailable, NotSent, PhaseWrite, nil, "the connection takes no more bytes now")

// keptKey says where and until when the key of a call that may have run is known for certain.
type keptKey struct {
	life  uint64
	until mono.Time
}

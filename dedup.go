package anser

import (
	"cmp"
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

// ReplyMemory bounds what a server with [Deduplicate] remembers. A field that is 0 has its default.
type ReplyMemory struct {
	Calls int           // those that run among them; the default is 10,000
	Bytes int           // of their replies; the default is 16 MiB
	Age   time.Duration // after which a call is forgotten; the default is 5 minutes
}

var defaultReplyMemory = ReplyMemory{Calls: 10_000, Bytes: 16 << 20, Age: 5 * time.Minute}

// RememberReplies sets how much a server with [Deduplicate] remembers.
func RememberReplies(m ReplyMemory) ServerOption {
	return serverOption(func(o *serverOptions) {
		if !o.wants(min(m.Calls, m.Bytes) >= 0 && m.Age >= 0, "anser.RememberReplies(%+v): want numbers of at least 0", m) {
			return
		}
		d := defaultReplyMemory
		o.memory = ReplyMemory{Calls: cmp.Or(m.Calls, d.Calls), Bytes: cmp.Or(m.Bytes, d.Bytes), Age: cmp.Or(m.Age, d.Age)}
	})
}

type deduplicateOption struct{}

func (deduplicateOption) applyServer(o *serverOptions) { o.once = true }
func (deduplicateOption) applyHandle(o *handleOptions) { o.once = true }

// DeduplicateOption is valid for a server and for a method.
type DeduplicateOption interface {
	ServerOption
	HandleOption
}

// Deduplicate has calls with an [IdempotencyKey] run once: a further call with the same key and request gets
// the reply or error of the first one, for which it waits if need be. Given to the server it holds for
// all methods. Calls without a key run as always.
//
// What is remembered is in the memory of the process: another instance does not know it, and neither does this
// one after a restart. [RememberReplies] bounds it. A client with another identity, or on a server
// without [Authenticate] with another TLS certificate, has other keys. Interceptors do not
// see a call that is answered from memory. Such a call runs on when its connection is lost, as its caller
// comes back for the reply; its deadline and a cancel end it as always.
func Deduplicate() DeduplicateOption { return deduplicateOption{} }

// replyMemory remembers the calls with idempotency keys.
type replyMemory struct {
	limits ReplyMemory

	mu      sync.Mutex // guards what follows
	entries map[replyKey]*remembered
	order   []*remembered // that are over, oldest first; forgotten ones among them
	bytes   int           // of frames
	frames  int           // index into order of the oldest entry that may have a frame
}

// replyKey is what makes two calls the same.
type replyKey struct {
	method *method
	client [sha256.Size]byte // see clientKey
	key    string
}

// remembered is a call that runs or ran.
type remembered struct {
	key    replyKey
	digest [sha256.Size]byte
	ctx    *callContext  // of the call while it runs, then nil; guarded by the memory's mu
	done   chan struct{} // closed when the call is over; what follows is written before, and under the memory's mu later
	at     int64         // nanotime of the end
	frame  []byte        // of the answer; nil after a refusal, and when there was no room for it
	ran    bool
}

var (
	errOtherRequest = refusal(FailedPrecondition, "the idempotency key was used for another request: give each call a key of its own, as in rand.Text()").WithRetryAfter(RetryNever)
	errForgotten    = &Error{Code: DataLoss, Outcome: Executed, Message: "the call with this idempotency key has run, and its reply is not remembered any more (anser.RememberReplies)"}
)

// takesKey says why a call with a key is refused, or nil.
func (s *Server) takesKey(ctx *callContext) *Error {
	switch {
	case ctx.method.converse != nil || ctx.oneway:
		return refusal(InvalidArgument, "a stream or oneway call has no idempotency key").WithRetryAfter(RetryNever)
	case !ctx.method.once:
		return refusal(Unimplemented, "method %q does not take idempotency keys here: give it or the server anser.Deduplicate", ctx.method.name)
	}
	return nil
}

// executeOnce executes a call with a key, unless one with the same key was executed before.
func (s *Server) executeOnce(ctx *callContext, cd codec.Codec, payload, out []byte) []byte {
	digest, fault := s.digest(ctx, payload)
	if fault != nil {
		return appendRefusal(out, ctx, fault)
	}
	key := replyKey{method: ctx.method, key: ctx.brought.key, client: ctx.conn.clientKey()}
	for {
		r, first, fault := s.replies.enter(ctx, key, digest)
		if fault != nil {
			return appendRefusal(out, ctx, fault)
		}
		if first {
			return s.executeFirst(ctx, cd, payload, out, r)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return appendError(out, ctx, &Error{Code: CodeOf(ctx.Err()), Outcome: OutcomeUnknown, Message: "the call waited for another one with the same idempotency key"})
		}
		if ran, frame := s.replies.recall(r); ran {
			s.stats.replayed.Add(1)
			return s.replay(ctx, frame, out)
		}
		// The first one was refused: this one is the first now, or waits for another.
	}
}

// executeFirst executes the call and remembers its answer.
func (s *Server) executeFirst(ctx *callContext, cd codec.Codec, payload, out []byte, r *remembered) (result []byte) {
	var frame []byte
	defer func() { s.replies.settle(r, frame) }()
	// If the handler ends the goroutine, this is what its caller is told.
	frame = appendError(nil, ctx, errExited)
	result = s.execute(ctx, cd, payload, out)
	frame = result[len(out):]
	return result
}

// replay appends the answer that a call with the same key got.
func (s *Server) replay(ctx *callContext, frame, out []byte) []byte {
	if s.o.observers != nil { // they may refuse here what they refuse elsewhere
		if fault := s.observeRequest(ctx, 0); fault != nil {
			return appendRefusal(out, ctx, fault)
		}
	}
	start := len(out)
	switch {
	case frame == nil:
		out = appendError(out, ctx, errForgotten)
	case uint64(len(frame)-wire.HeaderSize) > ctx.conn.peerSays.MaxFrame:
		out = appendError(out, ctx, &Error{Code: ResourceExhausted, Outcome: Executed, Message: "the reply is over the client's limit: raise it there with anser.MaxMessage"})
	default:
		out = append(out, frame...)
		putUint64(out[start+idOffset:], ctx.id)
	}
	if s.o.observers != nil {
		s.observeReply(ctx, out[start:])
	}
	return out
}

// digest returns what tells the request of a call from others.
func (s *Server) digest(ctx *callContext, payload []byte) (sum [sha256.Size]byte, fault *Error) {
	h := sha256.New()
	p := ctx.brought.packing
	if p == nil {
		h.Write([]byte{ctx.codec, 0})
		h.Write(payload)
		return [sha256.Size]byte(h.Sum(nil)), nil
	}
	h.Write([]byte{ctx.codec, p.compressor.ID()})
	if p.plain {
		h.Write(payload)
		return [sha256.Size]byte(h.Sum(nil)), nil
	}
	b := scratch.Get().(*[]byte)
	defer putScratch(b)
	out, err := unpack((*b)[:0], payload, p.compressor, s.o.maxMessage, s.o.maxExpansion)
	if err != nil {
		fault := refusal(err.code, "the request: %s", err.text).WithRetryAfter(RetryNever)
		fault.limit = err.limit
		return sum, fault
	}
	*b = out
	h.Write(out)
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// enter returns the entry of a call, and whether the caller is the first one and has to settle it.
func (m *replyMemory) enter(ctx *callContext, key replyKey, digest [sha256.Size]byte) (r *remembered, first bool, fault *Error) {
	now := nanotime()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(now)
	if r = m.entries[key]; r != nil {
		if r.digest != digest {
			return nil, false, errOtherRequest
		}
		return r, false, nil
	}
	if len(m.entries) >= m.limits.Calls && len(m.order) == 0 {
		return nil, false, over(limitReplies, "the server is at its limit of %d calls with idempotency keys that run (anser.RememberReplies)", m.limits.Calls)
	}
	for len(m.entries) >= m.limits.Calls {
		m.dropLocked()
	}
	if m.entries == nil {
		m.entries = make(map[replyKey]*remembered)
	}
	r = &remembered{key: key, digest: digest, ctx: ctx, done: make(chan struct{})}
	m.entries[key] = r
	return r, true, nil
}

// settle notes the answer of a call, of which it keeps a copy. A refused one did not run: its key is free again.
func (m *replyMemory) settle(r *remembered, frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer close(r.done)
	r.ctx = nil
	if refused(frame) {
		delete(m.entries, r.key)
		return
	}
	r.ran, r.at = true, nanotime()
	m.order = append(m.order, r)
	if len(frame) > m.limits.Bytes {
		return
	}
	r.frame = append([]byte(nil), frame...)
	m.bytes += len(r.frame)
	// A key is worth more than a reply: without it the call would run again.
	for m.bytes > m.limits.Bytes {
		o := m.order[m.frames]
		m.frames++
		m.bytes -= len(o.frame)
		o.frame = nil
	}
}

// stop cancels what runs. Those whose connections are lost are in no other table.
func (m *replyMemory) stop() {
	m.mu.Lock()
	var running []*callContext
	for _, r := range m.entries {
		if r.ctx != nil {
			running = append(running, r.ctx)
		}
	}
	m.mu.Unlock()
	for _, ctx := range running {
		ctx.end(context.Canceled)
	}
}

// recall returns the answer of a call that is over; nil if there was no room for it.
func (m *replyMemory) recall(r *remembered) (ran bool, frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return r.ran, r.frame
}

// forgetLocked drops what is too old.
func (m *replyMemory) forgetLocked(now int64) {
	for len(m.order) > 0 && now-m.order[0].at > int64(m.limits.Age) {
		m.dropLocked()
	}
}

// dropLocked forgets the oldest call that is over.
func (m *replyMemory) dropLocked() {
	r := m.order[0]
	m.order[0] = nil
	m.order = m.order[1:]
	m.frames = max(m.frames-1, 0)
	m.bytes -= len(r.frame)
	delete(m.entries, r.key)
}

// refused reports whether the frame says that the call did not run.
func refused(frame []byte) bool {
	h, err := wire.ParseHeader(frame)
	if err != nil || h.Type != wire.TypeError {
		return false
	}
	e, err := wire.ParseError(h.Flags, frame[wire.HeaderSize:])
	return err == nil && e.Outcome == wire.Refused
}

package anser

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/replycache"
	"github.com/anser-rpc/anser/wire"
)

// ReplyCacheLimits limits what a server with [Deduplicate] remembers. A field that is 0 has its
// default.
type ReplyCacheLimits struct {
	// Bytes is the memory for keys and replies, at least 4 KiB; the default is 64 MiB. A key
	// takes 72 bytes, so the default holds the keys of 2,000 calls per second. Replies use the
	// memory that keys leave.
	Bytes int
	// Age is how long a key is known after its call has ended; the default is 5 minutes, the
	// maximum a day.
	Age time.Duration
}

var defaultReplyMemory = ReplyCacheLimits{Bytes: 64 << 20, Age: 5 * time.Minute}

// ReplyCache sets how much a server with [Deduplicate] remembers.
func ReplyCache(m ReplyCacheLimits) ServerOption {
	return serverOption(func(o *serverOptions) {
		if !o.wants((m.Bytes == 0 || m.Bytes >= replycache.MinBytes) && m.Age >= 0 && m.Age <= 24*time.Hour,
			"anser.ReplyCache(%+v): want at least %d bytes and an age of up to a day", m, replycache.MinBytes) {
			return
		}
		d := defaultReplyMemory
		o.memory = ReplyCacheLimits{Bytes: cmp.Or(m.Bytes, d.Bytes), Age: cmp.Or(m.Age, d.Age)}
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

// Deduplicate makes calls with an [IdempotencyKey] run once: a further call with the same key and
// request gets the reply or error of the first one, and waits for it if necessary. As an option
// of the server it applies to all methods. Calls without a key run as always.
//
// A key is known for the time that [ReplyCache] sets, and never forgotten earlier: when there is
// no room for another key, the new call is refused with ResourceExhausted. A reply may be dropped
// to make room; then a further call gets DataLoss with the outcome Executed. No client can use
// all of the room: a client that has used most of it is refused, and others are not. Clients are
// distinguished by identity or TLS certificate, else by address.
//
// The keys and replies are in the memory of the process: another instance does not know them, and
// neither does a process after a restart. A client does not send a call with a key to any of
// those once the call may have run; the call fails with the outcome Unknown. A client with
// another identity, or on a server without [Authenticate] with another TLS certificate, has other
// keys. Interceptors do not see a call that is answered from memory. Such a call runs on when its
// connection is lost, since its caller comes back for the reply; its deadline and a cancel end it
// as always.
func Deduplicate() DeduplicateOption { return deduplicateOption{} }

var (
	errOtherRequest = &Error{
		Code: FailedPrecondition, Outcome: Refused, RetryAfter: RetryNever, cause: ErrKeyReused,
		Message: "the idempotency key was used for another request: give each call a key of its own, as in rand.Text()",
	}
	errForgotten = &Error{Code: DataLoss, Outcome: Executed, Message: "the call with this idempotency key has run, and its reply is not remembered any more (anser.ReplyCache)"}
)

// takesKey returns why a call with a key is refused, or nil.
func (s *Server) takesKey(m *method, oneway bool) *Error {
	switch {
	case m.converse != nil || oneway:
		return refusal(InvalidArgument, "a stream or oneway call has no idempotency key").WithRetryAfter(RetryNever)
	case !m.once && !m.takesKeys:
		return refusal(Unimplemented, "method %q does not take idempotency keys here: give it or the server anser.Deduplicate", m.name)
	}
	return nil
}

// executeOnce executes a call with a key, unless one with the same key was executed before.
func (s *Server) executeOnce(ctx *callContext, cd codec.Codec, payload, out []byte, run *execution) []byte {
	digest, fault := s.digest(ctx, payload)
	if fault != nil {
		return appendRefusal(out, ctx, fault)
	}
	id, client := replycache.NewID(ctx.conn.clientKey(), ctx.method.name, ctx.extras.key), ctx.conn.shareOf()
	for {
		e, err := s.replies.Enter(ctx, id, digest, client)
		s.duties.Stir() // the cache's clock
		switch {
		case err != nil:
			return appendRefusal(out, ctx, s.keyRefused(err))
		case e.Ran:
			s.stats.replayed.Add(1)
			return s.replay(ctx, e.Frame, out, run)
		case e.First && isRepeated(ctx):
			s.replies.Settle(e.Call, false, nil)
			return appendError(out, ctx, errUnknownKey)
		case e.First:
			return s.executeFirst(ctx, cd, payload, out, run, e.Call)
		}
		select {
		case <-e.Call.Done(): // if that one was refused, this one is the first now, or waits for another
		case <-ctx.Done():
			return appendError(out, ctx, &Error{Code: CodeOf(ctx.Err()), Outcome: OutcomeUnknown, Message: "the call waited for another one with the same idempotency key"})
		}
	}
}

// shareOf returns the client that a key counts for: its address, if it has not proven an
// identity.
func (c *calleeHalf) shareOf() replycache.Client {
	client := c.clientKey()
	if client != ([sha256.Size]byte{}) {
		return client
	}
	if at, err := netip.ParseAddrPort(addressOf(c.peerInfo().Addr)); err == nil {
		addr := at.Addr().Unmap()
		if addr.Is6() {
			if p, err := addr.WithZone("").Prefix(64); err == nil { // a machine can use every address of its prefix
				addr = p.Addr()
			}
		}
		ip := addr.As16()
		copy(client[:], ip[:])
	}
	return client
}

// keyRefused returns the refusal for an error of the reply cache.
func (s *Server) keyRefused(err error) *Error {
	if errors.Is(err, replycache.ErrOtherRequest) {
		return errOtherRequest
	}
	return over(limitReplies, "the client is at its share of the limit of %d bytes for idempotency keys (anser.ReplyCache)", s.o.memory.Bytes)
}

// executeFirst executes the call and stores its answer.
func (s *Server) executeFirst(ctx *callContext, cd codec.Codec, payload, out []byte, run *execution, r *replycache.Call[*callContext]) (result []byte) {
	var frame []byte
	defer func() { s.replies.Settle(r, !refused(frame), frame) }()
	// The error of the call if the handler ends the goroutine.
	b := errExited.body()
	frame = ctx.conn.appendError(nil, ctx.id, ctx.method.flags(), &b)
	run.began = 0 // the call may have waited for another one
	run.lends = false
	result = s.execute(ctx, cd, payload, out, run)
	if k := ctx.protocolCall(); k != nil {
		frame = k.remember()
		return result
	}
	frame = result[len(out):]
	return result
}

// replay appends the answer that a call with the same key got.
func (s *Server) replay(ctx *callContext, frame, out []byte, run *execution) []byte {
	if s.o.observers == nil {
		return s.appendReplay(ctx, frame, out)
	}
	x := observedCalls.Get().(*observedCall)
	s.observeCall(x, ctx, run.arrived, 0, 0)
	x.info.Replayed = true
	if fault := s.observeRequest(ctx, 0); fault != nil { // they may refuse this call as any other
		s.countRefusal(ctx.method, fault)
		run.ended = s.endObserved(x, fault, 0)
		return appendError(out, ctx, fault)
	}
	start := len(out)
	out = s.appendReplay(ctx, frame, out)
	info := s.observeReply(ctx, out[start:])
	run.ended = s.endObserved(x, info.Err, info.Bytes)
	return out
}

func (s *Server) appendReplay(ctx *callContext, frame, out []byte) []byte {
	start := len(out)
	switch {
	case frame == nil:
		return appendError(out, ctx, errForgotten)
	case ctx.protocolCall() != nil:
		ctx.protocolCall().recall(frame)
	case uint64(len(frame)-wire.HeaderSize) > ctx.conn.peer.MaxFrame:
		return appendError(out, ctx, ctx.replyTooLong(len(frame)-wire.HeaderSize))
	default:
		out = append(out, frame...)
		putUint64(out[start+idOffset:], ctx.id)
	}
	return out
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

// digest returns the hash that identifies the request of a call.
func (s *Server) digest(ctx *callContext, payload []byte) (sum uint64, fault *Error) {
	if k := ctx.protocolCall(); k != nil {
		if k.sum == nil {
			return 0, errUnidentified
		}
		return *k.sum, nil
	}
	h := sha256.New()
	p := ctx.extras.packing
	switch {
	case p == nil:
		return digestOf(ctx.codec, payload), nil
	case p.plain:
		h.Write([]byte{ctx.codec, p.compressor.ID()})
		h.Write(payload)
	default:
		h.Write([]byte{ctx.codec, p.compressor.ID()})
		b := scratch.Get().(*[]byte)
		defer putScratch(b)
		out, err := unpack((*b)[:0], payload, p.compressor, s.o.maxMessage, s.o.maxExpansion, false)
		if err != nil {
			fault := refusal(err.code, "the request: %s", err.text).WithRetryAfter(RetryNever)
			fault.limit = err.limit
			return 0, fault
		}
		*b = out
		h.Write(out)
	}
	return binary.LittleEndian.Uint64(h.Sum(nil)), nil
}

// digestOf is the digest of a request that names no compression.
func digestOf(codec uint8, payload []byte) uint64 {
	h := sha256.New()
	h.Write([]byte{codec, 0})
	h.Write(payload)
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

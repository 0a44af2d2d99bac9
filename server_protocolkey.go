package anser

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/anser-rpc/anser/wire"
)

// ErrKeyReused is in the chain of the error of a [ProtocolCall] whose idempotency key was used for
// another request, for protocols that have an answer of their own for it.
var ErrKeyReused = errors.New("the idempotency key was used for another request")

var (
	errUnknownKey = &Error{
		Code: Unavailable, Outcome: OutcomeUnknown, RetryAfter: RetryNever,
		Message: "the call may have run before, and this process does not know its idempotency key: it was never here, or is forgotten (anser.ReplyCache)",
	}
	errUnidentified = refusal(Internal, "the protocol has not identified the request of a call with an idempotency key")
)

// checkKey returns why a request with an idempotency key is refused, or nil.
func (s *Server) checkKey(r *ProtocolRequest, m *method) *Error {
	if err := wire.CheckIdempotencyKey(r.IdempotencyKey); err != nil {
		return refusal(InvalidArgument, "%v", err).WithRetryAfter(RetryNever)
	}
	if r.Codec == nil {
		return refusal(Unimplemented, "this protocol has no codec in which a reply could be remembered for an idempotency key")
	}
	if r.Repeated && m.takesKeys && !m.idempotent { // what knows the key does not learn that the call may have run
		return errUnknownKey
	}
	return s.takesKey(m, r.Oneway)
}

// Identify gives the bytes that distinguish the request of a call with an idempotency key, which
// are usually the encoded message without compression: a further call with the key must have the
// same bytes and codec. It is called once, before Run, and does nothing for a call without a key.
func (k *ProtocolCall) Identify(request []byte) {
	if k.extras.key == "" {
		return
	}
	sum := digestOf(k.ctx.codec, request)
	k.sum = &sum
}

// isRepeated reports whether a call with the key may have run before.
func isRepeated(ctx *callContext) bool {
	k := ctx.protocolCall()
	return k != nil && k.repeated
}

// remember returns the answer of the call as a frame, from which recall restores it. A reply that
// cannot be encoded becomes an error.
func (k *ProtocolCall) remember() (frame []byte) {
	ctx := k.ctx
	srv := ctx.conn.server
	defer func() {
		if p := recover(); p != nil {
			srv.panicked(ctx, nil, panicEncode, p)
			frame = k.rememberFault()
		}
	}()
	if k.fault != nil {
		return k.rememberFault()
	}
	frame = wire.AppendReplyHead(nil, ctx.id, ctx.method.flags(), ctx.codec, 0, ctx.trailers())
	frame, err := k.codec.Append(frame, k.reply)
	if err != nil {
		appendFault(nil, ctx, &Error{Code: Internal, Outcome: Executed, Message: fmt.Sprintf("encode the reply with %s: %v", k.codec.Name(), err)})
		return k.rememberFault()
	}
	wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
	return frame
}

func (k *ProtocolCall) rememberFault() []byte {
	b := k.fault.body()
	b.Metadata = k.ctx.trailers()
	return k.ctx.conn.appendError(nil, k.ctx.id, k.ctx.method.flags(), &b)
}

// recall sets the answer of the call to that of an earlier one, which may have arrived over
// another protocol.
func (k *ProtocolCall) recall(frame []byte) {
	defer func() {
		if p := recover(); p != nil {
			k.ctx.conn.server.panicked(k.ctx, nil, panicEncode, p)
		}
	}()
	h, err := wire.ParseHeader(frame)
	if err != nil {
		k.reply, k.fault = nil, errForgotten
		return
	}
	var trailers []byte
	if body := frame[wire.HeaderSize:]; h.Type == wire.TypeError {
		var e wire.ErrorBody
		if e, err = wire.ParseError(h.Flags, body); err == nil {
			k.fault, trailers = remoteError(&e), e.Metadata
			k.fault.Remote, k.fault.Phase = false, PhaseNone
		}
	} else {
		var r wire.Reply
		if r, err = wire.ParseReply(h.Flags, body); err == nil {
			reply := reflect.New(k.ctx.method.reply).Interface()
			if err = k.codec.Unmarshal(r.Payload, reply); err == nil {
				k.reply, trailers = reply, r.Metadata
			}
		}
	}
	if err != nil {
		k.reply, k.fault = nil, errForgotten
		return
	}
	if pairs, _, err := wire.ParseRequestMetadata(trailers, uint64(len(trailers))); err == nil && len(pairs) > 0 {
		k.ctx.mu.Lock()
		k.ctx.trail = &pairs
		k.ctx.mu.Unlock()
	}
}

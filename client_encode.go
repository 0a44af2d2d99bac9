package anser

import (
	"context"
	"fmt"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

// encode makes the REQUEST frame that all attempts send.
func (c *Client) encode(ctx context.Context, k *call, m *clientMethod, in, out any, o *callOptions) (cd codec.Codec, fault *Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, NotSent, PhaseEncode, nil, "the codec panicked on %T: %v", in, p)
		}
	}()
	cd = o.codec
	if cd == nil {
		if cd = c.codecFor(in, out); cd == nil {
			return nil, noCodec(in, out)
		}
	}
	k.codec = cd.ID()
	if o.mistake != nil {
		return nil, badOption(o.mistake)
	}
	if fault := c.encodeHead(ctx, k, m, o, 0); fault != nil {
		return nil, fault
	}
	k.compression = o.compression
	if o.compression != nil { // an attempt puts the frame together when it knows its server
		plain, err := cd.Append(k.plain[:0], in)
		if err != nil {
			return nil, unencodable(cd, err)
		}
		k.plain = plain
		return cd, k.setPickRequest(ctx, m, in, o, plain)
	}
	if k.lends {
		if k.lent = lendable(cd, in); k.lent != nil {
			wire.PutLength(k.frame, uint32(len(k.frame)+len(k.lent)-wire.HeaderSize))
			return cd, k.setPickRequest(ctx, m, in, o, k.lent)
		}
	}
	frame, err := cd.Append(k.frame, in)
	if err != nil {
		return nil, unencodable(cd, err)
	}
	k.frame = frame
	wire.PutLength(k.frame, uint32(len(k.frame)-wire.HeaderSize))
	message := k.frame[k.head:]
	if k.lends && len(message) >= lendFrom {
		// A reply that comes early must not be written into what is lent.
		k.frame, k.encoded, k.lent = k.frame[:k.head:k.head], k.frame, message
	}
	return cd, k.setPickRequest(ctx, m, in, o, message)
}

// encodeHead encodes the part of the frame before the message. With FlagStream it is the frame of
// a stream, whose time is that of its life.
func (c *Client) encodeHead(ctx context.Context, k *call, m *clientMethod, o *callOptions, flags wire.Flags) (fault *Error) {
	r := wire.Request{Codec: k.codec, Priority: uint8(Normal), Attempt: o.earlier}
	by := k.traced
	k.traced = nil
	var md Metadata
	var left time.Duration
	timed := flags&wire.FlagStream == 0
	if timed {
		left = min(o.timeout, maxTimeout)
	}
	bounded := left != 0
	k.deadline = 0
	k.settled = o.pinned || !o.mode.elsewhere()
	k.mover, k.early = nil, false
	if m.mayRunTwice(o) {
		k.early = timed && !o.oneway && !o.special() && o.attempts > 1 // another attempt may follow
		if !k.settled && o.attempts > 1 {
			k.mover = c
		}
	}
	if bounded {
		k.deadline = k.began.Add(left)
	}
	if ctx != context.Background() {
		if ctx == nil {
			return failure(InvalidArgument, NotSent, PhaseEncode, nil, "the context is nil: pass context.Background()")
		}
		if ctx.Err() != nil {
			return contextFailure(ctx, NotSent, PhaseEncode)
		}
		if d, ok := ctx.Deadline(); ok && timed {
			if until := time.Until(d); !bounded || !o.bounded || until <= left {
				left, bounded = until, true
				k.deadline = 0 // the context's own timer ends the call
			}
		}
		if k.mover != nil && parentRetried(ctx) {
			k.mover = nil
		}
		r.Priority = uint8(PriorityFrom(ctx))
		if by == nil {
			if t, ok := TraceFrom(ctx); ok {
				flags |= wire.FlagTrace
				r.Trace = t
			}
		}
		if md = outgoing(ctx); md != nil {
			block, err := encodeMetadata(md)
			if err != nil {
				return err.(*Error)
			}
			r.Metadata = block
		}
	}
	if by != nil {
		if t, ok := by.traceOf(ctx); ok {
			flags |= wire.FlagTrace
			r.Trace = t
		}
	}
	if o.keyed {
		if fault := o.addKey(ctx, &r); fault != nil {
			return fault
		}
	}
	if c.router != nil {
		if k.route, fault = c.route(ctx, m.name, md); fault != nil {
			return fault
		}
	}
	if bounded {
		if left <= 0 {
			return failure(DeadlineExceeded, NotSent, PhaseEncode, context.DeadlineExceeded, "the call's time was over before it began")
		}
		r.Timeout = wireTimeout(left)
	}
	k.frame = wire.AppendRequest(k.frame[:0], 0, flags, &r)
	k.head = int32(len(k.frame))
	return nil
}

func noCodec(in, out any) *Error {
	why := ""
	for _, v := range []any{in, out} {
		if v == nil {
			continue
		}
		if err := sharedMsgpack.Unfit(v); err != nil {
			why = fmt.Sprintf(" (MessagePack: %v)", err)
			break
		}
	}
	return failure(InvalidArgument, NotSent, PhaseEncode, nil, "no codec handles a request of type %T with a reply of type %T: choose one with anser.Codec%s", in, out, why)
}

func badOption(mistake error) *Error {
	return failure(InvalidArgument, NotSent, PhaseEncode, mistake, "%v", mistake)
}

func unencodable(cd codec.Codec, err error) *Error {
	return failure(InvalidArgument, NotSent, PhaseEncode, err, "encode the request with %s: %v", cd.Name(), err)
}

// fittingCodec is a codec that can be chosen by the types of messages.
type fittingCodec struct {
	codec.Codec
	fitter codec.Fitter // the same
}

// codecFor chooses by the types of the messages, among the user's codecs first.
func (c *Client) codecFor(in, out any) codec.Codec {
	for i := range c.codecs {
		if f := c.codecs[i].fitter; f.Fits(in) && (out == nil || f.Fits(out)) {
			return c.codecs[i].Codec
		}
	}
	if own := ownCodec(in, out); own != nil {
		return own
	}
	if c.plain.Fits(in) && (out == nil || c.plain.Fits(out)) {
		return c.plain
	}
	return nil
}

// decode turns the payload that e sent into the reply. It runs on the caller's goroutine.
func (k *call) decode(e *endpoint, cd codec.Codec, out any) (fault *Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, Executed, PhaseDecode, nil, "the codec panicked on a reply of type %T: %v", out, p)
		}
		if fault != nil {
			fault.Address = e.Instance().Address
		}
	}()
	if out == nil {
		return nil
	}
	payload := k.reply()
	if k.packed {
		if payload, fault = k.unpackReply(e.Host); fault != nil {
			return fault
		}
	}
	if k.large != nil && !k.packed && keepPayload(cd, payload, out) {
		k.large = nil // out has it
		return nil
	}
	if err := unmarshal(cd, payload, out, k.fresh); err != nil {
		return undecodedReply(cd, err)
	}
	return nil
}

// undecodedReply is not inlined for the sake of the frame of decode.
//
//go:noinline
func undecodedReply(cd codec.Codec, err error) *Error {
	return failure(Internal, Executed, PhaseDecode, err, "decode the reply with %s: %v", cd.Name(), err)
}

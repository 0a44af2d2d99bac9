package anser

import (
	"context"
	"errors"

	"github.com/anser-rpc/anser/wire"
)

// The calls that are forwarded and have a goroutine: streams, and calls through interceptors.

// converse forwards a stream. It is the handler of every stream that the server does not serve.
func (p *forwarder) converse(ctx context.Context, st anyStream) error {
	k := forwardedFrom(ctx)
	up, method, refused := k.choose(ctx)
	if refused != nil {
		return &forwardedError{refused}
	}
	defer k.ended()
	f, refused := k.forwarding(method, k.asReceived(), k.flags, nil)
	if refused != nil {
		return &forwardedError{k.toCaller(refused)}
	}
	to, err := up.openForward(ctx, f)
	if err == nil {
		err = forwardStream(unwatched(st).(*stream), to) // no other protocol forwards calls
	}
	if to != nil {
		fault := k.setTrailers(to.trailer())
		if err == nil && fault != nil {
			err = fault
		}
	}
	if err != nil {
		return &forwardedError{k.toCaller(asFault(err))}
	}
	if !k.ctx.method.listed.Load() {
		p.list(k.ctx.method)
	}
	return nil
}

// forwardedFrom returns the call of a handler's context.
func forwardedFrom(ctx context.Context) *forwardedCall {
	k, _ := callFrom(ctx).extras.forwarded.(*forwardedCall)
	return k
}

// asReceived returns what is left of the REQUEST.
func (k *forwardedCall) asReceived() wire.Request {
	r := wire.Request{Codec: k.call.Codec, Attempt: k.ctx.attempt, Priority: uint8(k.ctx.level()), Metadata: k.extras.metadata}
	if t := k.ctx.trace; t != nil {
		r.Trace = t.Trace
	}
	if k.extras.packing != nil {
		r.Compression = k.extras.packing.compressor.ID()
	}
	return r
}

// setTrailers makes md the trailers of the call.
func (k *forwardedCall) setTrailers(md Metadata) *Error {
	for key, value := range md {
		if err := k.ctx.setTrailer(wire.Pair{Key: key, Value: value}); err != nil {
			return &Error{Code: ResourceExhausted, Outcome: Executed, Message: err.Error()}
		}
	}
	return nil
}

// handle forwards a call whose request has gone through the interceptors of the server. It is the
// handler of every call that the server does not serve.
func (p *forwarder) handle(ctx context.Context, in any) (any, error) {
	k := forwardedFrom(ctx)
	payload, ok := in.(*[]byte)
	if !ok || payload == nil {
		return nil, errReplaced
	}
	up, method, refused := k.choose(ctx)
	if refused != nil {
		return nil, &forwardedError{refused}
	}
	defer k.ended()
	r := k.asReceived()
	r.Payload, r.Compression = *payload, 0
	w := &forwardedWait{done: make(chan struct{})}
	f, refused := k.forwarding(method, r, k.flags&^(wire.FlagPlain|wire.FlagForced), w)
	if refused != nil {
		return nil, &forwardedError{k.toCaller(refused)}
	}
	call := up.forward(ctx, f)
	defer context.AfterFunc(ctx, call.stop)()
	<-w.done
	fault := k.setTrailers(w.trailers)
	if w.fault != nil {
		return nil, &forwardedError{k.toCaller(w.fault)}
	}
	if fault != nil {
		return nil, fault
	}
	if !k.ctx.method.listed.Load() {
		p.list(k.ctx.method)
	}
	return &w.payload, nil
}

var errReplaced = errors.New("an interceptor replaced the request of a call that is forwarded by something else than a *[]byte")

// forwardedWait is a call whose goroutine waits for its reply.
type forwardedWait struct {
	done     chan struct{} // closed at the end
	payload  []byte
	trailers Metadata
	fault    *Error
}

func (w *forwardedWait) forwarded(r forwardReply, fault *Error) {
	w.payload, w.trailers, w.fault = append([]byte(nil), r.payload...), metadataOf(r.trailers), fault
	close(w.done)
}

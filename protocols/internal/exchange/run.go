package exchange

import (
	"context"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
)

// Known returns why the client of a connection may not call, if it has not authenticated, so that
// nothing of its request is read. The server counts the refusal.
func Known(pc *anser.ProtocolConn, r *anser.ProtocolRequest) *anser.Error {
	if !pc.NeedsLogin() {
		return nil
	}
	call, fault := pc.Admit(r)
	if fault == nil { // it has done so just now
		fault = errUnknown
		call.Refuse(fault)
	}
	return fault
}

var errUnknown = anser.Refuse(anser.Unauthenticated, "the client has not authenticated itself")

// NotServed returns the server's error for a method that it does not have, or that is a stream. It
// counts as a refused call.
func NotServed(pc *anser.ProtocolConn, name string) *anser.Error {
	call, fault := pc.Admit(&anser.ProtocolRequest{Method: name, Codec: JSON, Priority: anser.Normal})
	if fault == nil {
		fault = errServedNow
		call.Refuse(fault)
	}
	return fault
}

var errServedNow = anser.Refuse(anser.Unavailable, "the method was registered just now: call it again")

// Call makes the server run a call, and waits for its end. decode decodes the message of the
// request after it was admitted, and returns what distinguishes it from others with the same
// idempotency key. When ctx ends, the call is cancelled, unless it has such a key: then its caller
// comes back for the reply. The trailers are those of the handler, also with an error.
func Call(ctx context.Context, pc *anser.ProtocolConn, r *anser.ProtocolRequest, decode func(call *anser.ProtocolCall, into any) (payload []byte, fault *anser.Error)) (reply any, trailers anser.Metadata, fault *anser.Error) {
	call, fault := pc.Admit(r)
	if fault != nil {
		return nil, nil, fault
	}
	in := call.NewRequest()
	payload, fault := decode(call, in)
	if fault != nil {
		call.Refuse(fault)
		return nil, nil, fault
	}
	if r.IdempotencyKey == "" {
		stop := context.AfterFunc(ctx, call.Cancel)
		defer stop()
	}
	call.Identify(payload)
	done := make(chan anser.ProtocolReply, 1)
	call.Run(in, func(r anser.ProtocolReply) error {
		done <- r
		return nil
	})
	end := <-done
	return end.Message, end.Trailers, end.Err
}

// Stream makes the server run a stream with the messages of carrier, and waits for its end. opened
// is called after the stream was admitted, with the context of its handler. When ctx ends, the
// stream is cancelled.
func Stream(ctx context.Context, pc *anser.ProtocolConn, r *anser.ProtocolRequest, carrier anser.ProtocolStream, opened func(context.Context)) (trailers anser.Metadata, fault *anser.Error) {
	r.Stream = true
	call, fault := pc.Admit(r)
	if fault != nil {
		return nil, fault
	}
	if opened != nil {
		opened(call.Context())
	}
	stop := context.AfterFunc(ctx, call.Cancel)
	defer stop()
	done := make(chan anser.ProtocolReply, 1)
	call.RunStream(carrier, func(r anser.ProtocolReply) error {
		done <- r
		return nil
	})
	end := <-done
	return end.Trailers, end.Err
}

// Decode decodes a message with a codec. A panic of the codec is an error.
func (m *Method) Decode(c codec.Codec, data []byte, into any) (fault *anser.Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = anser.Refuse(anser.Internal, "the codec panicked on the message")
		}
	}()
	c = m.codecOf(c)
	if err := c.Unmarshal(data, into); err != nil {
		return anser.Refuse(anser.InvalidArgument, "decode the message with %s: %v", c.Name(), err)
	}
	return nil
}

// Encode encodes a message with a codec. A panic of the codec is an error.
func (m *Method) Encode(c codec.Codec, b []byte, msg any) (data []byte, fault *anser.Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = anser.Errorf(anser.Internal, "the codec panicked on the reply")
		}
	}()
	c = m.codecOf(c)
	data, err := c.Append(b, msg)
	if err != nil {
		return b, anser.Errorf(anser.Internal, "encode the reply with %s: %v", c.Name(), err)
	}
	return data, nil
}

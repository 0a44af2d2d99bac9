package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/stubwire"
)

// forwarded is a method whose calls go to a service.
type forwarded struct {
	gateway *Gateway
	entry   *entry
}

// The codecs of messages that are forwarded.
var (
	forwardingJSON     = codec.Forwarding(codec.JSONID, "json")
	forwardingProtobuf = codec.Forwarding(codec.ProtobufID, "protobuf")
	forwardingMsgpack  = codec.Forwarding(codec.MsgpackID, "msgpack")
)

// codec returns the one for the messages of a stream.
func (p *forwarded) codec() codec.Codec {
	if p.entry.method.protobuf {
		return forwardingProtobuf
	}
	return forwardingJSON
}

// codecOf returns the one for a request and its reply.
func (p *forwarded) codecOf(in any) codec.Codec {
	if e, ok := in.(*codec.Encoded); ok && e.Codec == codec.MsgpackID {
		return forwardingMsgpack
	}
	return p.codec()
}

// begin returns the service for a call and its client, and the context with what goes through. The
// caller calls leave of the service when the call has ended.
func (p *forwarded) begin(ctx context.Context) (context.Context, *upstream, *anser.Client, error) {
	md := anser.MetadataFrom(ctx)
	u, c, err := p.gateway.choose(ctx, p.entry, md)
	if err != nil {
		p.gateway.counts.refused.Add(1)
		return ctx, nil, nil, err
	}
	return anser.WithMetadata(ctx, forwardedMetadata(ctx, md)), u, c, nil
}

// call forwards a call.
func (p *forwarded) call(ctx context.Context, in any) (any, error) {
	out, u, c, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer u.leave()
	opts := make([]anser.CallOption, 0, 4)
	opts = append(opts, anser.Codec(p.codecOf(in)))
	if p.entry.method.info.Idempotent {
		opts = append(opts, anser.Idempotent())
	}
	p.gateway.counts.calls.Add(1)
	if _, ok := out.Deadline(); !ok {
		var cancel context.CancelFunc
		out, cancel = context.WithTimeout(out, cmp.Or(p.gateway.plan.Load().config.Timeout, defaultTimeout))
		defer cancel()
	}
	if p.entry.method.info.Oneway {
		return nil, p.ended(c.Send(out, p.entry.method.name, in, opts...))
	}
	if key := anser.IdempotencyKeyFrom(ctx); key != "" {
		opts = append(opts, anser.IdempotencyKey(key))
	}
	var trailers anser.Metadata
	reply := new(codec.Encoded)
	err = c.Call(out, p.entry.method.name, in, reply, append(opts, anser.Trailer(&trailers))...)
	setTrailers(ctx, trailers)
	if err != nil {
		return nil, p.ended(err)
	}
	return reply, nil
}

// ended counts the end of a call.
func (p *forwarded) ended(err error) error {
	if err == nil {
		return nil
	}
	p.gateway.counts.failed.Add(1)
	if e, ok := errors.AsType[*anser.Error](err); ok && e.Outcome == anser.NotSent {
		p.gateway.counts.unreachable.Add(1)
	}
	return anser.ForwardError(err)
}

func setTrailers(ctx context.Context, trailers anser.Metadata) {
	for k, v := range trailers {
		// An error means a trailer that the server itself sets.
		_ = anser.SetTrailer(ctx, k, v)
	}
}

// stream forwards a stream.
func (p *forwarded) stream(ctx context.Context, in *anser.DynamicStream) error {
	out, u, c, err := p.begin(ctx)
	if err != nil {
		return err
	}
	defer u.leave()
	out, cancel := context.WithCancel(out)
	defer cancel()
	p.gateway.counts.calls.Add(1)
	var none *codec.Encoded
	var first any
	if !p.entry.method.info.ClientStream {
		request := new(codec.Encoded)
		err := in.Recv(request)
		if err == io.EOF {
			return anser.Refuse(anser.InvalidArgument, "the client closed the stream without a request")
		}
		if err != nil {
			return err
		}
		first = request
	}
	st, err := c.OpenDynamic(out, p.entry.method.name, none, none, first, anser.Codec(p.codec()),
		anser.StreamSides(p.entry.method.info.ClientStream, p.entry.method.info.ServerStream))
	if err != nil {
		return p.ended(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- p.send(in, st, first != nil, cancel) }()
	err = p.receive(in, st)
	setTrailers(ctx, st.Trailer())
	cancel()
	// The goroutine ends when the client has sent its last message, or this handler has returned:
	// until then it may wait for the client.
	select {
	case broken := <-sent:
		if broken != nil {
			return broken
		}
	default:
	}
	return p.ended(err)
}

// send forwards the messages of the client, until its last one.
func (p *forwarded) send(in, out *anser.DynamicStream, all bool, cancel func()) error {
	for !all {
		msg := new(codec.Encoded)
		switch err := in.Recv(msg); err {
		case nil:
			all = out.Send(msg) != nil // the other direction has the reason
		case io.EOF:
			all = true
		default:
			cancel() // the client is gone, or has sent what is not a message
			return err
		}
	}
	_ = out.CloseSend() // likewise
	return nil
}

// receive forwards the messages of the service, until its last one.
func (p *forwarded) receive(in, out *anser.DynamicStream) error {
	for {
		msg := new(codec.Encoded)
		err := out.Recv(msg)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := in.Send(msg); err != nil {
			return err
		}
	}
}

// forwardedMetadata returns the metadata for the service.
func forwardedMetadata(ctx context.Context, md anser.Metadata) anser.Metadata {
	out := make(anser.Metadata, len(md)+3)
	maps.Copy(out, md)
	for _, k := range hopByHop {
		delete(out, k)
	}
	delete(out, stubwire.AcceptsKey) // the headers of the service come with its trailers
	delete(out, callerKey)
	delete(out, groupsKey)
	addCaller(ctx, out)
	return out
}

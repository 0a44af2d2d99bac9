package connectstubs

import (
	"context"
	"fmt"
	"io"
	"reflect"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/stubwire"
)

// serverInfo returns what a handler learns about its call.
func serverInfo(ctx context.Context, spec connect.Spec) *connect.CallInfo {
	info := &connect.CallInfo{Spec: spec, Protocol: protocolName}
	if p, ok := anser.PeerFrom(ctx); ok && p.Addr != nil {
		info.PeerAddr = p.Addr.String()
	}
	fromWire(info.RequestHeader(), stubwire.Unpack(anser.MetadataFrom(ctx)))
	return info
}

// outgoing returns headers or trailers of a handler as stubs send them.
func outgoing(h *connect.Header) (map[string][]string, error) {
	md, err := toWire(h)
	if err != nil {
		return nil, connect.NewError(connect.CodeInternal, err.Error()).WithCause(err)
	}
	return md, nil
}

// sendTrailer sends the trailers with the end of the call, and headers that cannot be sent before.
func sendTrailer(ctx context.Context, info *connect.CallInfo, headersToo bool) error {
	md, err := outgoing(info.ResponseTrailer())
	if err != nil {
		return err
	}
	trailer := stubwire.Pack(md)
	if headersToo {
		header, err := outgoing(info.ResponseHeader())
		if err != nil {
			return err
		}
		if len(header) > 0 {
			trailer[stubwire.HeadersKey] = stubwire.PackHeaders(header)
		}
	}
	for k, v := range trailer {
		if err := anser.SetTrailer(ctx, k, v); err != nil {
			return connect.Errorf(connect.CodeInternal, "connectstubs: %v", err).WithCause(err)
		}
	}
	return nil
}

// serveCall runs a unary handler.
func serveCall(ctx context.Context, handlers *connect.Server, spec connect.Spec, request any) (any, error) {
	info := serverInfo(ctx, spec)
	st := &unaryStream{info: info, request: request}
	err := handlers.Call(ctx, spec.Procedure, info, st)
	if bad := sendTrailer(ctx, info, true); err == nil {
		err = bad
	}
	if err == nil && st.reply == nil {
		err = connect.NewError(connect.CodeUnimplemented, "connectstubs: the handler ended without a reply")
	}
	if err != nil {
		return nil, fromConnect(err)
	}
	return st.reply, nil
}

// unaryStream is the call of a unary handler. As in Connect, one goroutine sends and another one
// receives.
type unaryStream struct {
	info    *connect.CallInfo
	request any // nil when it was received
	reply   proto.Message
}

var _ connect.ServerStream = (*unaryStream)(nil)

// Receive moves the request to msg.
func (s *unaryStream) Receive(msg any) error {
	if s.request == nil {
		return io.EOF
	}
	m, err := messageOf(msg)
	if err != nil {
		return err
	}
	request := s.request
	s.request = nil
	s.info.ReceiveStats = connect.MessageStats{Size: proto.Size(request.(proto.Message))}
	return move(m, request)
}

// move gives to the content of the decoded request, which is not used afterwards.
func move(to proto.Message, request any) error {
	target, source := reflect.ValueOf(to), reflect.ValueOf(request)
	if target.IsNil() {
		return connect.NewError(connect.CodeInternal, "connectstubs: the handler receives into nil")
	}
	if target.Type() == source.Type() {
		proto.Reset(to)
		target.Elem().Set(source.Elem())
		return nil
	}
	// Such as the dynamic message of a proxy.
	b, err := proto.Marshal(request.(proto.Message))
	if err == nil {
		err = proto.Unmarshal(b, to)
	}
	if err != nil {
		return connect.Errorf(connect.CodeInternal, "connectstubs: decode the request: %v", err).WithCause(err)
	}
	return nil
}

// SendHeaders does nothing: the headers are sent with the reply.
func (s *unaryStream) SendHeaders() error { return nil }

// Send takes the reply.
func (s *unaryStream) Send(msg any) error {
	m, err := messageOf(msg)
	if err != nil {
		return err
	}
	if s.reply != nil {
		return connect.NewError(connect.CodeInternal, "connectstubs: the handler has sent a reply already")
	}
	s.reply = m
	s.info.SendStats = connect.MessageStats{Size: proto.Size(m)}
	return nil
}

// serveStream runs a handler of a stream.
func serveStream(ctx context.Context, handlers *connect.Server, spec connect.Spec, stream *anser.DynamicStream) error {
	info := serverInfo(ctx, spec)
	st := &serverStream{st: stream, info: info, inMessage: anser.MetadataFrom(ctx).Get(stubwire.AcceptsKey) != ""}
	err := handlers.Call(ctx, spec.Procedure, info, st)
	if bad := st.SendHeaders(); err == nil {
		err = bad
	}
	if bad := sendTrailer(ctx, info, !st.inMessage); err == nil {
		err = bad
	}
	return fromConnect(err)
}

// serverStream is a stream of a handler. As in Connect, one goroutine sends and another one
// receives.
type serverStream struct {
	st        *anser.DynamicStream
	info      *connect.CallInfo
	inMessage bool // whether the client reads headers in a message
	received  bool // a message; owned by the receiving goroutine
	headed    bool // the headers were sent; owned by the sending goroutine
}

var _ connect.ServerStream = (*serverStream)(nil)

// Receive receives a message. It returns io.EOF when the client sends no more.
func (s *serverStream) Receive(msg any) error {
	m, err := messageOf(msg)
	if err != nil {
		return err
	}
	if err := s.st.Recv(m); err != nil {
		if err == io.EOF && !s.received && s.info.Spec.StreamType == connect.StreamTypeServer {
			return connect.NewError(connect.CodeUnimplemented, "connectstubs: the stream has no request")
		}
		return toConnect(err)
	}
	s.received = true
	s.info.ReceiveStats = connect.MessageStats{Size: proto.Size(m)}
	return nil
}

// SendHeaders sends the headers, if there are any and it was not done before.
func (s *serverStream) SendHeaders() error {
	if s.headed || !s.inMessage {
		return nil
	}
	s.headed = true
	md, err := outgoing(s.info.ResponseHeader())
	if err != nil {
		return err
	}
	if len(md) == 0 {
		return nil
	}
	if err := s.st.Send(stubwire.HeaderMessage(md)); err != nil {
		return fmt.Errorf("connectstubs: send the headers: %w", toConnect(err))
	}
	return nil
}

// Send sends the headers, if that was not done, and a message.
func (s *serverStream) Send(msg any) error {
	m, err := messageOf(msg)
	if err != nil {
		return err
	}
	if err := s.SendHeaders(); err != nil {
		return err
	}
	s.info.SendStats = connect.MessageStats{Size: proto.Size(m)}
	return toConnect(s.st.Send(m))
}

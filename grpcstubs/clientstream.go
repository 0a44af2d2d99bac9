package grpcstubs

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/stubwire"
)

// NewStream opens a stream. One on which only the server sends is opened with its request, by the
// first SendMsg.
func (c *Conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	if desc == nil {
		return nil, status.Error(codes.InvalidArgument, "grpcstubs: the description of the stream is nil")
	}
	o, err := optionsOf(ctx, method, opts)
	if err != nil {
		return nil, err
	}
	name, err := methodName(method)
	if err != nil {
		return nil, err
	}
	var options []anser.CallOption
	options = append(options, inProtobuf, anser.StreamSides(desc.ClientStreams, desc.ServerStreams))
	if o.failFast {
		options = append(options, anser.WithFailMode(anser.Failfast))
	}
	ctx = outgoing(ctx, metadata.Join(o.credentials, metadata.Pairs(stubwire.AcceptsKey, "1")))
	s := &clientStream{desc: desc, ctx: ctx, options: o, open: func(first any) (*anser.DynamicStream, error) {
		return c.client.OpenDynamic(ctx, name, (*emptypb.Empty)(nil), (*emptypb.Empty)(nil), first, options...)
	}}
	if desc.ClientStreams {
		if err := s.start(nil); err != nil {
			o.finish(err)
			return nil, err
		}
	}
	return s, nil
}

// clientStream is a stream of a generated client. As in gRPC, one goroutine sends and another one
// receives.
type clientStream struct {
	desc    *grpc.StreamDesc
	ctx     context.Context
	options *callOptions
	open    func(first any) (*anser.DynamicStream, error)

	mu      sync.Mutex // guards the fields below
	st      *anser.DynamicStream
	failed  error // why it was not opened
	over    bool  // its end was reported
	headers metadata.MD
	headed  bool   // headers are known
	waiting []byte // the first message, received to find out
	waits   bool
}

// start opens the stream.
func (s *clientStream) start(first any) error {
	st, err := s.open(first)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed = toStatus(err); err == nil {
		s.st = st
	}
	return s.failed
}

// stream returns the stream, or why there is none.
func (s *clientStream) stream() (*anser.DynamicStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st == nil && s.failed == nil {
		return nil, status.Error(codes.Internal, "grpcstubs: the stream has no request yet: call SendMsg first")
	}
	return s.st, s.failed
}

// Context returns the context of the stream.
func (s *clientStream) Context() context.Context {
	if st, err := s.stream(); err == nil {
		return st.Context()
	}
	return s.ctx
}

// SendMsg sends a message. When the stream has ended it returns io.EOF, and RecvMsg the reason.
func (s *clientStream) SendMsg(m any) error {
	if err := s.options.checkSize(m, s.options.maxSend, "sent"); err != nil {
		return err
	}
	if !s.desc.ClientStreams {
		s.mu.Lock()
		begun := s.st != nil || s.failed != nil
		s.mu.Unlock()
		if begun {
			return status.Error(codes.Internal, "grpcstubs: the method takes one request")
		}
		return s.start(m)
	}
	st, err := s.stream()
	if err != nil {
		return io.EOF
	}
	if err := st.Send(m); err != nil {
		if e, ok := errors.AsType[*anser.Error](err); ok && e.Phase == anser.PhaseEncode {
			return toStatus(err) // the stream goes on
		}
		return io.EOF
	}
	return nil
}

// CloseSend tells the server that there are no more messages.
func (s *clientStream) CloseSend() error {
	st, err := s.stream()
	if err != nil {
		return nil //nits:ignore nilerr RecvMsg returns the reason
	}
	_ = st.CloseSend()
	return nil
}

// Header returns the headers of the server, once it has sent them, a message or its end.
func (s *clientStream) Header() (metadata.MD, error) {
	st, err := s.stream()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.headed {
		return s.headers, nil
	}
	first := new(emptypb.Empty)
	if err := st.Recv(first); err != nil {
		s.noteHeaders(nil)
		return s.headers, nil // RecvMsg returns the error, as in gRPC
	}
	raw := first.ProtoReflect().GetUnknown()
	md, ok := stubwire.ParseHeaderMessage(raw)
	if !ok {
		s.waiting, s.waits = raw, true
	}
	s.noteHeaders(md)
	return s.headers, nil
}

// noteHeaders stores the headers. It is called with mu held.
func (s *clientStream) noteHeaders(md metadata.MD) {
	s.headers, s.headed = md, true
	if md == nil {
		s.headers = metadata.MD{}
	}
	s.options.header(s.headers)
}

// Trailer returns the trailers of the server, after the end of the stream.
func (s *clientStream) Trailer() metadata.MD {
	st, err := s.stream()
	if err != nil {
		return nil
	}
	return fromAnser(st.Trailer())
}

// RecvMsg receives a message. After the last one it returns io.EOF, or the error of the call.
func (s *clientStream) RecvMsg(m any) error {
	st, err := s.stream()
	if err != nil {
		return s.end(err)
	}
	if err := s.receive(st, m); err != nil {
		if err == io.EOF && !s.desc.ServerStreams {
			err = status.Error(codes.Unimplemented, "grpcstubs: the stream ended without a reply")
		}
		return s.end(toStatus(err))
	}
	if err := s.options.checkSize(m, s.options.maxRecv, "received"); err != nil {
		st.Close()
		return s.end(err)
	}
	if s.desc.ServerStreams {
		return nil
	}
	switch err := st.Recv(new(emptypb.Empty)); err {
	case io.EOF:
		_ = s.end(io.EOF)
		return nil
	case nil:
		st.Close()
		return s.end(status.Error(codes.Unimplemented, "grpcstubs: the method has more than one reply"))
	default:
		return s.end(toStatus(err))
	}
}

// receive receives a message that is not the one with the headers.
func (s *clientStream) receive(st *anser.DynamicStream, m any) error {
	s.mu.Lock()
	if s.waits {
		raw := s.waiting
		s.waiting, s.waits = nil, false
		s.mu.Unlock()
		return proto.Unmarshal(raw, m.(proto.Message))
	}
	first := !s.headed
	s.mu.Unlock()
	err := st.Recv(m)
	if !first || err != nil {
		return err
	}
	message := m.(proto.Message).ProtoReflect()
	md, ok := stubwire.ParseHeaderMessage(message.GetUnknown())
	s.mu.Lock()
	s.noteHeaders(md)
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return st.Recv(m)
}

// end reports the end of the stream once.
func (s *clientStream) end(err error) error {
	s.mu.Lock()
	again := s.over
	s.over = true
	if !s.headed {
		s.noteHeaders(nil)
	}
	s.mu.Unlock()
	if again {
		return err
	}
	s.options.trailer(s.Trailer())
	if err == io.EOF {
		s.options.finish(nil)
	} else {
		s.options.finish(err)
	}
	return err
}

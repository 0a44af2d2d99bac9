package connectstubs

import (
	"errors"
	"io"
	"sync"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/stubwire"
)

// clientStream is a stream of a generated client. As in Connect, one goroutine sends and another
// one receives.
type clientStream struct {
	call
	closed bool  // CloseSend was called; owned by the sending goroutine
	sent   bool  // a message; owned by the sending goroutine
	headed bool  // headers are known; owned by the receiving goroutine
	end    error // of the stream, as Receive returned it; owned by the receiving goroutine

	mu     sync.Mutex // guards the fields below, also while the stream is opened
	st     *anser.DynamicStream
	failed error // why it was not opened
}

// open returns the stream, and opens it first if that was not done, with a first message that may
// be nil. It reports whether it has sent that.
func (s *clientStream) open(first any) (st *anser.DynamicStream, begun bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st != nil || s.failed != nil {
		return s.st, false, s.failed
	}
	ctx, err := s.outgoing()
	if err == nil {
		kind := anser.StreamSides(s.spec.StreamType&connect.StreamTypeClient != 0, s.spec.StreamType&connect.StreamTypeServer != 0)
		s.st, err = s.t.client.OpenDynamic(ctx, s.name, (*emptypb.Empty)(nil), (*emptypb.Empty)(nil), first, inProtobuf, kind)
	}
	if err != nil {
		s.cancel()
		s.failed = toConnect(err)
		return nil, false, s.failed
	}
	return s.st, true, nil
}

// SendHeaders opens the stream.
func (s *clientStream) SendHeaders() error {
	_, _, err := s.open(nil)
	return err
}

// Send sends a message. When the stream has ended it returns io.EOF, and Receive the reason.
func (s *clientStream) Send(msg any) error {
	m, err := messageOf(msg)
	if err != nil {
		return err
	}
	if s.closed {
		return io.EOF
	}
	if s.sent && s.spec.StreamType&connect.StreamTypeClient == 0 {
		return connect.Errorf(connect.CodeUnimplemented, "connectstubs: the method %s takes one request", s.name)
	}
	s.info.SendStats = connect.MessageStats{Size: proto.Size(m)}
	st, begun, err := s.open(m)
	if err != nil {
		return err
	}
	s.sent = true
	if begun {
		return nil
	}
	if err := st.Send(m); err != nil {
		if e, ok := errors.AsType[*anser.Error](err); ok && e.Phase == anser.PhaseEncode {
			return toConnect(err) // the stream goes on
		}
		return io.EOF
	}
	return nil
}

// CloseSend tells the handler that there are no more messages.
func (s *clientStream) CloseSend() error {
	if s.closed {
		return nil
	}
	s.closed = true
	st, _, err := s.open(nil)
	if err != nil {
		return err
	}
	_ = st.CloseSend() // Receive returns why the stream has ended
	return nil
}

// Close ends the stream, also while another goroutine sends or receives.
func (s *clientStream) Close() error {
	s.cancel()
	return nil
}

// Receive receives a message. After the last one it returns io.EOF, or the error of the call.
func (s *clientStream) Receive(msg any) error {
	m, err := messageOf(msg)
	if err != nil {
		return err
	}
	if s.end != nil {
		return s.end
	}
	st, _, err := s.open(nil)
	if err != nil {
		return err
	}
	if err := s.receive(st, m); err != nil {
		if err == io.EOF && s.spec.StreamType == connect.StreamTypeClient {
			err = connect.Errorf(connect.CodeUnimplemented, "connectstubs: the method %s ended without a reply", s.name)
		}
		return s.finish(st, err)
	}
	s.info.ReceiveStats = connect.MessageStats{Size: proto.Size(m)}
	if s.spec.StreamType != connect.StreamTypeClient {
		return nil
	}
	switch err := st.Recv(new(emptypb.Empty)); err {
	case io.EOF:
		_ = s.finish(st, io.EOF)
		return nil
	case nil:
		return s.finish(st, connect.Errorf(connect.CodeUnimplemented, "connectstubs: the method %s has more than one reply", s.name))
	default:
		return s.finish(st, err)
	}
}

// receive receives a message that is not the one with the headers.
func (s *clientStream) receive(st *anser.DynamicStream, m proto.Message) error {
	if err := st.Recv(m); err != nil || s.headed {
		return err
	}
	s.headed = true
	md, ok := stubwire.ParseHeaderMessage(m.ProtoReflect().GetUnknown())
	if !ok {
		return nil
	}
	fromWire(s.info.ResponseHeader(), md)
	return st.Recv(m)
}

// finish notes the end of the stream and returns its error.
func (s *clientStream) finish(st *anser.DynamicStream, err error) error {
	trailer := st.Trailer()
	fromWire(s.info.ResponseHeader(), stubwire.UnpackHeaders(trailer))
	fromWire(s.info.ResponseTrailer(), stubwire.Unpack(trailer))
	s.end = toConnect(err)
	s.cancel()
	return s.end
}

package anser

import (
	"context"
	"errors"
	"io"
	"iter"
)

// Sender is the sending half of a [Stream], for a handler that only sends. A test of such a handler
// can pass its own.
type Sender[M any] interface {
	// Send is [Stream.Send].
	Send(msg *M) error
}

// Receiver is the receiving half of a [Stream], for a handler that only receives. A test of such a
// handler can pass its own.
type Receiver[M any] interface {
	// Recv is [Stream.Recv].
	Recv() (*M, error)
	// All is [Stream.All].
	All() iter.Seq2[*M, error]
}

// ReceiverStream is a stream on which only the server sends, as its client sees it. Receive until
// Recv returns an error or io.EOF, or call Close. Recv and All are safe for concurrent use with
// Close.
type ReceiverStream[M any] interface {
	Receiver[M]
	// Close is [Stream.Close].
	Close() error
	// Trailer is [Stream.Trailer].
	Trailer() Metadata
}

// SenderStream is a stream of messages that the server answers once, as its client sees it. End it
// with CloseAndRecv or Close.
type SenderStream[M, R any] interface {
	// Send is [Stream.Send]. After io.EOF, CloseAndRecv returns the reply, which the handler sent
	// without waiting for all messages.
	Send(msg *M) error
	// CloseAndRecv tells the handler that there are no more messages, waits for its reply and
	// returns it. The error is that of the handler or of the call.
	CloseAndRecv() (*R, error)
	// Close is [Stream.Close].
	Close() error
	// Trailer is [Stream.Trailer]. It is available after CloseAndRecv.
	Trailer() Metadata
}

// ServerStreamMethod is the name of a method that answers one request of type A with any number of
// messages of type R. Like [Method] it is a contract that the compiler checks:
//
//	const Watch anser.ServerStreamMethod[Query, Event] = "Prices.Watch"
type ServerStreamMethod[A, R any] string

var errNoRequest = Refuse(InvalidArgument, "the client closed the stream without a request")

// Handle serves the method on s. The stream ends when h returns; see [HandleStream]. What the
// client sends after its request is ignored.
func (m ServerStreamMethod[A, R]) Handle(s *Server, h func(ctx context.Context, in *A, out Sender[R]) error, opts ...HandleOption) error {
	if h == nil {
		return s.refuseMethod(errNilHandler(string(m)))
	}
	return HandleStream(s, string(m), func(ctx context.Context, st *Stream[R, A]) error {
		in, err := st.Recv()
		if err == io.EOF {
			return errNoRequest
		}
		if err != nil {
			return err
		}
		return h(ctx, in, st)
	}, append(opts[:len(opts):len(opts)], sides{server: true})...)
}

// Open calls the method through c; see the function [OpenWith].
func (m ServerStreamMethod[A, R]) Open(ctx context.Context, c *Client, in *A, opts ...CallOption) (ReceiverStream[R], error) {
	if in == nil {
		return nil, badOption(errors.New("the request is nil: pass a message"))
	}
	st, err := OpenWith[A, R](ctx, c, string(m), in, sides{server: true}.with(opts)...)
	if err != nil {
		return nil, err
	}
	_ = st.CloseSend() // Recv returns the error of a stream that failed meanwhile
	return st, nil
}

// ClientStreamMethod is the name of a method that answers any number of messages of type A with one
// reply of type R. Like [Method] it is a contract that the compiler checks:
//
//	const Upload anser.ClientStreamMethod[Chunk, Summary] = "Store.Upload"
type ClientStreamMethod[A, R any] string

// Handle serves the method on s. The handler may return before it has received all messages. A nil
// reply without an error is an Internal error; see [HandleStream] and [Handle].
func (m ClientStreamMethod[A, R]) Handle(s *Server, h func(ctx context.Context, in Receiver[A]) (*R, error), opts ...HandleOption) error {
	if h == nil {
		return s.refuseMethod(errNilHandler(string(m)))
	}
	return HandleStream(s, string(m), func(_ context.Context, st *Stream[R, A]) error {
		out, err := h(st.Context(), st)
		if err == nil && out == nil {
			none, bad := nilReply[R]()
			if bad != nil {
				return bad
			}
			out = none.(*R)
		}
		if err != nil {
			return err
		}
		return st.Send(out)
	}, append(opts[:len(opts):len(opts)], sides{client: true})...)
}

// Open opens a stream of the method through c; see the function [Open].
func (m ClientStreamMethod[A, R]) Open(ctx context.Context, c *Client, opts ...CallOption) (SenderStream[A, R], error) {
	st, err := Open[A, R](ctx, c, string(m), sides{client: true}.with(opts)...)
	if err != nil {
		return nil, err
	}
	return &senderStream[A, R]{Stream: st}, nil
}

// senderStream adds the reply to a stream of the client.
type senderStream[M, R any] struct{ *Stream[M, R] }

func (s *senderStream[M, R]) CloseAndRecv() (*R, error) {
	_ = s.CloseSend() // the error of a stream that has failed is that of Recv
	out, err := s.Recv()
	if err == io.EOF {
		return nil, failure(Internal, Executed, PhaseWait, nil, "the stream ended without a reply")
	}
	if err != nil {
		return nil, err
	}
	switch _, err := s.Recv(); err {
	case io.EOF:
		return out, nil
	case nil:
		_ = s.Close()
		return nil, failure(Internal, Executed, PhaseWait, nil, "the stream had more than one reply")
	default:
		return nil, err
	}
}

package anser

import (
	"context"
	"fmt"
	"io"
	"iter"
	"reflect"
)

// Stream is a call with any number of messages in both directions, as one side sees it: it sends messages of
// type S and receives messages of type R. The client gets one from [Open], a handler from [HandleStream]. A
// stream on which only one side sends more than one message is the same thing.
//
// The two directions are independent of each other: one goroutine may send while another one receives. All
// methods are safe for concurrent use, and each message is sent and received as a whole.
//
// A client that does not receive until an error or io.EOF comes has to call Close or to cancel the context that
// it gave to Open; otherwise the stream stays open until the handler returns.
type Stream[S, R any] struct{ st *stream }

// Send sends a message, which is encoded before Send returns and may be changed afterwards. Send does not wait
// for the other side to receive it: it blocks as long as the other side allows no more bytes because its
// reader is slow, and while the connection has enough to write. The end of the stream and of its context
// end the wait.
//
// When the stream has failed, Send returns why, as an [*Error]. On the client it returns io.EOF once the
// handler has returned with success and wants no more messages. A message that cannot be encoded, or is too
// large, is an error that leaves the stream as it is.
func (s *Stream[S, R]) Send(msg *S) error { return s.st.send(msg) }

// Recv returns the next message, which is the caller's own. It blocks until one is there, or the stream or
// its context ends. After the last message it returns io.EOF if the other side has ended with success: on the
// client the handler has returned nil, on the server the client has called CloseSend. Otherwise
// the error is an [*Error]. What Recv returned as an error, it returns from then on. When the context ends, what
// has arrived may still come first.
func (s *Stream[S, R]) Recv() (*R, error) {
	msg := new(R)
	if err := s.st.recv(msg, true); err != nil {
		return nil, err
	}
	return msg, nil
}

// RecvInto is Recv for messages by the million: it decodes the next one into msg, whose memory it uses again,
// and so makes no garbage where the codec needs none. After an error the content of msg is undefined.
func (s *Stream[S, R]) RecvInto(msg *R) error { return s.st.recv(msg, false) }

// All returns the messages until the end of the stream, for a range loop:
//
//	for msg, err := range st.All() {
//		if err != nil {
//			return err
//		}
//		...
//	}
//
// An error comes last and once; io.EOF is the end of the loop and not an error. A loop that is left early does
// not end the stream.
func (s *Stream[S, R]) All() iter.Seq2[*R, error] {
	return func(yield func(*R, error) bool) {
		for {
			msg, err := s.Recv()
			if err == io.EOF || !yield(msg, err) || err != nil {
				return
			}
		}
	}
}

// GrowWindow lets the other side send so many bytes more than the option [FlowControlWindows] says before this side has received
// them. It is for a stream that moves much, over a connection that is fast or long: as many bytes as the window has are on
// their way at once. It cannot be taken back, and so many bytes more may wait in memory. What is not positive, or
// would make the window 2 GiB, changes nothing. All streams together stay within the window of the connection.
func (s *Stream[S, R]) GrowWindow(bytes int) { s.st.widen(int64(bytes)) }

// CloseSend tells the handler that the client sends no more messages; its Recv then returns io.EOF. What the
// handler sends can still be received. A handler ends its direction by returning: for it CloseSend fails.
func (s *Stream[S, R]) CloseSend() error {
	if !s.st.side.isClient() {
		return failure(FailedPrecondition, OutcomeUnknown, PhaseNone, nil, "a handler ends its stream by returning, not with CloseSend")
	}
	return s.st.closeSend()
}

// Close cancels the stream of a client, unless it has ended: the context of the handler ends, and what was not
// received is dropped. It may be called more than once, and after the end it does nothing, so that it
// can be deferred. A handler ends its stream by returning: for it Close fails.
func (s *Stream[S, R]) Close() error {
	if !s.st.side.isClient() {
		return failure(FailedPrecondition, OutcomeUnknown, PhaseNone, nil, "a handler ends its stream by returning, not with Close")
	}
	s.st.cancel(failure(Canceled, OutcomeUnknown, PhaseWait, context.Canceled, "the stream was closed"))
	return nil
}

// Trailer returns what the handler sent beside its end with [SetTrailer], or nil. It is there at the latest when
// Recv has returned an error or io.EOF; on the server it is always nil. It is shared: do not change it.
func (s *Stream[S, R]) Trailer() Metadata { return s.st.trailer() }

// Context returns the context of the stream. On the server it is the handler's; on the client it comes from the one
// given to Open, and ends when the stream was received to its end or closed.
func (s *Stream[S, R]) Context() context.Context { return s.st.ctx }

// StreamMethod is the name of a stream method with the types of its messages: the client sends In, the handler
// Out. As a constant that both sides share it is a contract that the compiler checks:
//
//	const Talk anser.StreamMethod[Line, Line] = "Chat.Talk"
type StreamMethod[In, Out any] string

// Handle serves the method on s; see the function [HandleStream].
func (m StreamMethod[In, Out]) Handle(s *Server, h func(ctx context.Context, st *Stream[Out, In]) error, opts ...HandleOption) error {
	return HandleStream(s, string(m), h, opts...)
}

// Open opens a stream of the method through c; see the function [Open].
func (m StreamMethod[In, Out]) Open(ctx context.Context, c *Client, opts ...CallOption) (*Stream[In, Out], error) {
	return Open[In, Out](ctx, c, string(m), opts...)
}

// OpenWith opens a stream of the method through c with its first message; see the function [OpenWith].
func (m StreamMethod[In, Out]) OpenWith(ctx context.Context, c *Client, first *In, opts ...CallOption) (*Stream[In, Out], error) {
	return OpenWith[In, Out](ctx, c, string(m), first, opts...)
}

// HandleStream serves the stream method name with h, like [Handle]. Each stream runs h on a goroutine of its
// own and ends when h returns: with success if the error is nil, and otherwise with that error. Beside
// that, the context ends when the client cancels, its deadline passes or its connection is lost.
//
// Streams are never opened again by themselves and never run on the goroutine that reads, so the options
// [Idempotent] and [Inline] are errors here.
func HandleStream[S, R any](s *Server, name string, h func(ctx context.Context, st *Stream[S, R]) error, opts ...HandleOption) error {
	if h == nil {
		return s.refuseMethod(fmt.Errorf("method %q has no handler: the function is nil", name))
	}
	return s.add(opts, &method{
		name:     name,
		converse: func(ctx context.Context, st *stream) error { return h(ctx, &Stream[S, R]{st}) },
		request:  reflect.TypeFor[R](),
		reply:    reflect.TypeFor[S](),
	})
}

// Open opens a stream: the client sends messages of type S and receives messages of type R. It returns when the
// stream has a connection, which is chosen like that of a call, and does not wait for the handler. That the
// server refuses the stream, shows when messages are received or sent. The error is an [*Error], whose
// outcome is NotSent.
//
// The end of ctx is the end of the stream. A stream has no bound in time but that of ctx and the option [Timeout]
// given to Open; that of the client bounds the opening only. A stream is opened elsewhere if no byte of it
// was sent, and never again by itself after that; so options about further attempts are errors here, and so is
// [Trailer], for which a Stream has a method.
func Open[S, R any](ctx context.Context, c *Client, method string, opts ...CallOption) (*Stream[S, R], error) {
	return openStream[S, R](ctx, c, method, nil, opts)
}

// OpenWith is Open with the first message of the client, which travels in the frame that opens the stream.
func OpenWith[S, R any](ctx context.Context, c *Client, method string, first *S, opts ...CallOption) (*Stream[S, R], error) {
	return openStream[S, R](ctx, c, method, first, opts)
}

func openStream[S, R any](ctx context.Context, c *Client, method string, first *S, opts []CallOption) (*Stream[S, R], error) {
	if err := c.usable(ctx, method); err != nil {
		return nil, err
	}
	r := streamOpening{client: c, method: method, in: (*S)(nil), out: (*R)(nil)}
	if first != nil {
		r.first = first
	}
	st, err := r.open(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &Stream[S, R]{st}, nil
}

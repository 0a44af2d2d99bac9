package anser

import (
	"context"
	"io"
	"iter"
	"reflect"
)

// Stream is a call with any number of messages in both directions, as one side sees it: it sends
// messages of type S and receives messages of type R. The client gets one from [Open], a handler
// from [HandleStream]. A stream on which only one side sends more than one message has the same
// type.
//
// The two directions are independent of each other: one goroutine may send while another one
// receives. All methods are safe for concurrent use, and each message is sent and received as a
// whole.
//
// A client that does not receive until Recv returns an error or io.EOF must call Close or cancel
// the context given to Open; otherwise the stream stays open until the handler returns.
type Stream[S, R any] struct{ st anyStream }

// Send sends a message. The message is encoded before Send returns, and may be changed afterwards.
// Send does not wait for the peer to receive it. It blocks while the peer grants no credit because
// its reader is slow, and while the connection has enough to write. The end of the stream or of its
// context ends the wait.
//
// When the stream has failed, Send returns the reason as an [*Error]. On the client it returns
// io.EOF once the handler has returned successfully and takes no more messages. A message that
// cannot be encoded, or is too large, causes an error that leaves the stream usable.
func (s *Stream[S, R]) Send(msg *S) error { return s.st.send(msg) }

// Recv returns the next message, which the caller owns. It blocks until a message arrives or the
// stream or its context ends. After the last message it returns io.EOF if the peer has ended
// successfully: on the client, the handler has returned nil; on the server, the client has called
// CloseSend. Any other error is an [*Error]. Once Recv has returned an error, it returns the same
// error from then on. When the context ends, messages that have already arrived may still be
// returned first.
func (s *Stream[S, R]) Recv() (*R, error) {
	msg := new(R)
	if err := s.st.recv(msg, true); err != nil {
		return nil, err
	}
	return msg, nil
}

// RecvInto is like Recv, for high message rates: it decodes the next message into msg and reuses
// its memory, so that it does not allocate if the codec does not. After an error the content of msg
// is undefined.
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
// An error is yielded once, as the last pair; io.EOF ends the loop and is not an error. Breaking
// out of the loop does not end the stream.
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

// GrowWindow enlarges the window of the stream by n bytes: the peer may send that much more than
// the option [FlowControlWindows] allows before this side has received it. It is for a stream that
// transfers much data over a fast or long connection: at most a window of data is in flight at a
// time. It cannot be undone, and up to n more bytes may wait in memory. It does nothing if n is not
// positive, if the window would reach 2 GiB, or if another protocol carries the stream. All
// streams together stay within the window of the connection.
func (s *Stream[S, R]) GrowWindow(n int) { s.st.widen(int64(n)) }

// CloseSend tells the handler that the client sends no more messages; the handler's Recv then
// returns io.EOF. Messages of the handler can still be received. A handler ends its direction by
// returning: for it CloseSend fails.
func (s *Stream[S, R]) CloseSend() error { return s.st.closeSendOfClient() }

// Close cancels the stream of a client, unless it has ended: the context of the handler ends, and
// messages that were not received are dropped. It may be called more than once and does nothing
// after the end of the stream, so it can be deferred. A handler ends its stream by returning: for
// it Close fails.
func (s *Stream[S, R]) Close() error { return s.st.closeOfClient() }

// Trailer returns the metadata that the handler sent with its end by [SetTrailer], or nil. It is
// available once Recv has returned an error or io.EOF; on the server it is always nil. It is
// shared: do not change it.
func (s *Stream[S, R]) Trailer() Metadata { return s.st.trailer() }

// Context returns the context of the stream. On the server it is the handler's; on the client it is
// derived from the one given to Open, and ends when the stream was received to its end or closed.
func (s *Stream[S, R]) Context() context.Context { return s.st.context() }

// StreamMethod is the name of a stream method with the types of its messages: the client sends In,
// the handler Out. As a constant that both sides share it is a contract that the compiler checks:
//
//	const Talk anser.StreamMethod[Line, Line] = "Chat.Talk"
type StreamMethod[In, Out any] string

// Handle serves the method on s; see the function [HandleStream].
func (m StreamMethod[In, Out]) Handle(s *Server, h func(ctx context.Context, st *Stream[Out, In]) error, opts ...HandleOption) error {
	return HandleStream(s, string(m), h, opts...)
}

// Open opens a stream of the method through c; see the function [Open].
func (m StreamMethod[In, Out]) Open(ctx context.Context, c *Client, opts ...CallOption) (*Stream[In, Out], error) {
	return Open[In, Out](ctx, c, string(m), sides{client: true, server: true}.with(opts)...)
}

// OpenWith opens a stream of the method through c with its first message; see the function
// [OpenWith].
func (m StreamMethod[In, Out]) OpenWith(ctx context.Context, c *Client, first *In, opts ...CallOption) (*Stream[In, Out], error) {
	return OpenWith[In, Out](ctx, c, string(m), first, sides{client: true, server: true}.with(opts)...)
}

// HandleStream serves the stream method name with h, like [Handle]. Each stream runs h on its own
// goroutine and ends when h returns: successfully if the error is nil, and otherwise with that
// error. The context of h also ends when the client cancels, its deadline passes or its connection
// is lost.
//
// A stream is never reopened automatically and never runs on the reader goroutine, so the options
// [Idempotent] and [Inline] are errors here.
func HandleStream[S, R any](s *Server, name string, h func(ctx context.Context, st *Stream[S, R]) error, opts ...HandleOption) error {
	if h == nil {
		return s.refuseMethod(errNilHandler(name))
	}
	return s.add(opts, &method{
		name:     name,
		converse: func(ctx context.Context, st anyStream) error { return h(ctx, &Stream[S, R]{st}) },
		request:  reflect.TypeFor[R](),
		reply:    reflect.TypeFor[S](),
	})
}

// Open opens a stream: the client sends messages of type S and receives messages of type R. It
// returns when the stream has a connection, which is chosen like that of a call, and does not wait
// for the handler. If the server refuses the stream, Send and Recv return the error. The error of
// Open is an [*Error], whose outcome is NotSent.
//
// When ctx ends, the stream ends. A stream is bounded in time only by ctx and by the option
// [Timeout] given to Open; the Timeout of the client bounds only the opening. A stream is opened at
// another instance if no byte of it was sent, and never reopened automatically after that. Options
// about further attempts are therefore errors here, and so is [Trailer], for which a Stream has a
// method.
func Open[S, R any](ctx context.Context, c *Client, method string, opts ...CallOption) (*Stream[S, R], error) {
	return openStream[S, R](ctx, c, method, nil, opts)
}

// OpenWith is like Open, with a first message of the client, which is sent in the frame that opens
// the stream.
func OpenWith[S, R any](ctx context.Context, c *Client, method string, first *S, opts ...CallOption) (*Stream[S, R], error) {
	return openStream[S, R](ctx, c, method, first, opts)
}

// OpenDynamic opens a stream whose types of messages are known only when the program runs: sends
// and receives are pointers to messages of these types, which may be nil pointers. Otherwise it is
// like [Open], or with a first message, which may be nil, like [OpenWith].
func (c *Client) OpenDynamic(ctx context.Context, method string, sends, receives, first any, opts ...CallOption) (*DynamicStream, error) {
	if err := c.usable(ctx, method); err != nil {
		return nil, err
	}
	r := streamOpening{client: c, method: method, in: sends, out: receives, first: first}
	st, err := r.open(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &DynamicStream{st}, nil
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

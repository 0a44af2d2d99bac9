package anser

import (
	"context"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
)

// anyStream is a stream on either side, whatever carries its messages: Anser's own frames, or
// another protocol.
type anyStream interface {
	send(msg any) error
	// recv stores the next message in msg, which is a zero value if fresh is set.
	recv(msg any, fresh bool) error
	closeSendOfClient() error
	closeOfClient() error
	trailer() Metadata
	widen(n int64)
	// stop ends both halves from this side. What has not been received is dropped.
	stop(why error)
	context() context.Context
	setContext(ctx context.Context)
}

// stream is a stream on either side, whatever the types of its messages.
type stream struct {
	conn       *streams
	id         uint64
	codec      codec.Codec
	raw        bool // messages are their own encoding
	limit      int  // largest message to receive, in bytes
	badMessage Code // code of the error when a message cannot be decoded
	ctx        context.Context
	side       streamSide
	packing    *streamPacking // nil: messages are not compressed
	born       mono.Time      // time at which it was opened
	sending
	receiving
}

// newStream returns a stream with the initial credit of its connection. The caller fills in the
// fields of its side.
func newStream(s *streams, side streamSide, cd codec.Codec, limit int) *stream {
	st := &stream{conn: s, side: side, codec: cd, limit: limit, born: mono.Now()}
	_, st.raw = cd.(codec.Raw)
	st.sending.wake, st.receiving.wake = make(chan struct{}, 1), make(chan struct{}, 1)
	st.credit = int64(s.peer.StreamWindow)
	st.left, st.window = s.streamWindow, s.streamWindow
	return st
}

func (st *stream) context() context.Context { return st.ctx }

func (st *stream) setContext(ctx context.Context) { st.ctx = ctx }

// streamSide is the client or server side of a stream, whichever this process is.
type streamSide interface {
	// complete adds the fields of an error that the side knows.
	complete(e *Error)
	// refuse is called when received data cannot be accepted.
	refuse(st *stream, fault *Error)
	// received is called when the stream was received to its end.
	received()
	// hit counts that received data exceeds a limit.
	hit(l limit)
	// lapse cancels the stream if its context has ended, and nothing has noticed that yet.
	lapse(st *stream)
	isClient() bool
}

// told completes an error of this side.
func (st *stream) told(e *Error) *Error {
	st.side.complete(e)
	return e
}

// giveUp fails the stream because of received data, and returns the error for the receiver. On the
// server the receiver is the handler, which decides how to continue.
func (st *stream) giveUp(fault *Error) error {
	st.side.refuse(st, fault)
	return st.told(fault)
}

// hit counts that received data exceeds a limit, if l is one.
func (st *stream) hit(l limit) {
	if l != noLimit {
		st.side.hit(l)
	}
}

func (st *stream) trailer() Metadata {
	st.receiving.mu.Lock()
	defer st.receiving.mu.Unlock()
	if !st.side.isClient() || !st.ended {
		return nil
	}
	return st.trailers
}

package anser

import "context"

// DynamicStream is a [Stream] whose types of messages are known only when the program runs, for
// [DynamicMethod] and [Client.OpenDynamic]. Its methods are those of Stream, with pointers to
// messages in place of typed ones.
type DynamicStream struct{ st anyStream }

// Send sends a message; see [Stream.Send].
func (s *DynamicStream) Send(msg any) error { return s.st.send(msg) }

// Recv decodes the next message into msg, which is reset first if the codec can do that; see
// [Stream.RecvInto].
func (s *DynamicStream) Recv(msg any) error { return s.st.recv(msg, false) }

// CloseSend tells the handler that the client sends no more messages; see [Stream.CloseSend].
func (s *DynamicStream) CloseSend() error { return s.st.closeSendOfClient() }

// Trailer returns the metadata that the handler sent with its end; see [Stream.Trailer].
func (s *DynamicStream) Trailer() Metadata { return s.st.trailer() }

// Context returns the context of the stream; see [Stream.Context].
func (s *DynamicStream) Context() context.Context { return s.st.context() }

// closeSendOfClient ends the direction of a client.
func (st *stream) closeSendOfClient() error {
	if !st.side.isClient() {
		return failure(FailedPrecondition, OutcomeUnknown, PhaseNone, nil, "a handler ends its stream by returning, not with CloseSend")
	}
	// The function that ends a stream with its context runs in a goroutine of its own. Without
	// this, the end of the messages could overtake the cancellation, and the handler would
	// succeed.
	st.side.lapse(st)
	return st.closeSend()
}

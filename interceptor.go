package anser

import (
	"context"

	"github.com/anser-rpc/anser/codec"
)

// Invocation is one call as an interceptor sees it, on either side. It belongs to the call: an
// interceptor must not keep it, or anything it points to, after it has returned. Its fields are not
// safe for concurrent use. An interceptor may also pass on an Invocation that it made itself; on
// the client that is a call with the options of the client.
type Invocation struct {
	// Method is the full name, such as "Arith.Mul". On the server it is the canonical name,
	// whatever alias the caller used.
	Method string
	// Request is a pointer to the decoded message on the server, and the caller's argument on the
	// client. An interceptor may replace it before it calls next, by a value of the same type.
	Request any
	// Reply is the result of the call, once next has returned nil. On the client it is the pointer
	// that the caller waits for, before and after. On the server an interceptor may set it, to a
	// pointer of the type that the handler returns, and return without calling next.
	Reply any
	// Server is true on the server, false on the client.
	Server bool
	// Stream is true for a stream, which passes the interceptors once. On the server next runs the
	// handler and returns at the end of the stream; Request and Reply are nil. On the client next
	// opens the stream, which continues after next has returned: values in the context given to
	// next go with the stream, but the end of that context ends only the opening. Request is the
	// first message given to OpenWith, or nil, and Reply is nil.
	Stream bool
	// Oneway is true if no reply is wanted: on the client Reply is nil, on the server it is
	// dropped.
	Oneway bool
	// Address and Attempt are, on the client and once next has returned nil, the instance that
	// answered or took a oneway call, and the number of the attempt, from 0. For a failed call they
	// are in its [Error]; a handler finds its caller with [PeerFrom] and [AttemptFrom].
	Address string
	Attempt int

	side invocationSide // nil if an interceptor made the Invocation
	// On the client; nil if an interceptor made the Invocation: the options of the client apply.
	options *callOptions
	// What the last interceptor of a stream calls; nil if an interceptor made the Invocation.
	stream Func
	// What gets the messages of a stream, or nil; see OnMessage.
	messages func(message any, sent bool)
	picked   picked // of the attempt that ended the call
	sampled  uint8  // a bit for each interceptor of Sampled that wants the call
}

// invocationSide is the side on which an interceptor sees a call.
type invocationSide interface {
	codecOf(inv *Invocation) codec.Codec
}

// errForeignStream is the error of a stream whose Invocation an interceptor did not pass on.
var errForeignStream = &Error{
	Code: Internal, Outcome: NotSent,
	Message: "an interceptor passed on an Invocation of its own: for a stream it must pass on the given one",
}

// Func carries out a call, or the remaining steps of it.
type Func func(ctx context.Context, inv *Invocation) error

// Interceptor wraps calls on the client (around all attempts of a call) or on the server (around
// the handler). A chain is built once, when the client or server is made or a method is registered;
// the first interceptor given is the outermost.
type Interceptor func(next Func) Func

// chain wraps last in the interceptors.
func chain(interceptors []Interceptor, last Func) Func {
	for i := len(interceptors) - 1; i >= 0; i-- {
		last = interceptors[i](last)
	}
	return last
}

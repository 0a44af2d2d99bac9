package anser

import (
	"context"

	"github.com/anser-rpc/anser/codec"
)

// Invocation is one call as an interceptor sees it, on either side. It belongs to the call: an
// interceptor must not keep it, or what it points to, after it has returned. Its fields are not
// safe for concurrent use. An interceptor may also pass on an Invocation that it made itself; on the
// client that is a call with the options of the client.
type Invocation struct {
	// Method is the full name: "Arith.Mul". On the server it is the canonical name, whatever
	// alias the caller used.
	Method string
	// Request is a pointer to the decoded message on the server, and what the caller passed on
	// the client. An interceptor may replace it before it calls next, by a value of the same type.
	Request any
	// Reply is what the call gave, once next has returned nil. On the client it is the pointer
	// that the caller waits for, before and after. On the server an interceptor may set it, by a
	// pointer of the type that the handler returns, and return without calling next.
	Reply any
	// Server says which side this is.
	Server bool
	// Stream says that this is a stream. It passes the interceptors once. On the server next runs the
	// handler, so that it returns at the end of the stream; Request and Reply are nil. On the
	// client next opens the stream, which lives on after next has returned: what the context
	// given to next carries goes with the stream, but the end of that context only ends the opening.
	// Request is the first message given to OpenWith, or nil, and Reply is nil.
	Stream bool
	// Oneway says that no reply is wanted: on the client Reply is nil, on the server it is dropped.
	Oneway bool
	// Address and Attempt tell, on the client and once next has returned nil, which instance
	// answered, or took a oneway call, and at which attempt, from 0. A call that failed has them in its [Error], a handler's
	// caller is known to [PeerFrom] and [AttemptFrom].
	Address string
	Attempt int

	side    invocationSide // nil if an interceptor made the Invocation
	options *callOptions   // client side; nil if an interceptor made the Invocation: then the client's
	stream  Func           // of a stream: what the last interceptor calls; nil if an interceptor made the Invocation
}

// invocationSide is the side at which an interceptor sees a call.
type invocationSide interface {
	codecOf(inv *Invocation) codec.Codec
}

// errForeignStream is what becomes of a stream when an interceptor loses its Invocation.
var errForeignStream = &Error{
	Code: Internal, Outcome: NotSent,
	Message: "an interceptor passed on an Invocation of its own: for a stream it has to pass on the one that it was given",
}

// Func carries out a call, or what is left of it.
type Func func(ctx context.Context, inv *Invocation) error

// Interceptor wraps calls on the client (around all attempts of a call) or on the server (around
// the handler). Chains are built once, when the client or server is made or a method is
// registered; the first interceptor given is the outermost.
type Interceptor func(next Func) Func

// chain wraps last in the interceptors.
func chain(interceptors []Interceptor, last Func) Func {
	for i := len(interceptors) - 1; i >= 0; i-- {
		last = interceptors[i](last)
	}
	return last
}

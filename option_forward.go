package anser

import "context"

// Forward makes the server forward the calls of methods that it does not serve itself, as a gateway
// does. route chooses the client, and the name of the method there; "" means the same name. The
// message is not decoded: it goes on in its codec and compression, whether the server has them or
// not, and so does the reply. The rest of the call goes on too: the time that is left, trace,
// priority, number of the attempt, metadata, idempotency key, and back trailers, error, outcome and
// the advice about retries. What belongs to a connection does not: the client has its own
// credential, checksums and session. See docs/calls.md.
//
// Before route is called, the call has passed the checks of every call: [Authenticate],
// [Authorize], with the name that the caller uses, [MaxMessage], [MaxInFlight], [MaxCalls],
// [MaxMemory], [MaxQueueTime] and the deadline. ctx is that of a handler: [IdentityFrom],
// [MetadataFrom] and [PeerFrom] work with it. A call that route refuses with an error did not run.
// A nil client without an error means that the method is not served. route is called on the
// goroutine that reads a connection and must return at once; it must not panic.
//
// The client makes attempts as for any call, by its options and rules. A call has a goroutine only
// while it waits for a connection, or if the client has interceptors, rules for the method, or one
// of the modes [Backup] and [Fork]. Interceptors of the server see the encoded message, a *[]byte
// in Invocation.Request, and each call has a goroutine then; observers cost little. A client with
// [Failsafe] or [Failback] cannot forward calls.
//
// A cancel, the loss of the caller's connection and the end of its identity cancel the call there.
// Shutdown waits for calls that were forwarded. The clients must be closed after the server.
// Messages of streams are forwarded piece by piece, no faster than their receiver reads. Calls over
// other protocols are not forwarded, and [AdaptiveLimit] does not count these calls: they wait for
// another server and not for this one.
func Forward(route func(ctx context.Context, call *ForwardCall) (*Client, string, error)) ServerOption {
	return serverOption(func(o *serverOptions) {
		if !o.wants(route != nil, "anser.Forward: the function is nil") {
			return
		}
		o.forwarder = newForwarder(func(ctx context.Context, call *ForwardCall) (upstream, string, error) {
			c, method, err := route(ctx, call)
			if c == nil {
				return nil, method, err
			}
			return c, method, err
		})
	})
}

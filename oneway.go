package anser

import (
	"context"
	"fmt"
	"reflect"
)

// OnewayMethod is the name of a oneway method with the type of its message: no reply and no error travels
// back, and a message arrives once or not at all. As a constant that both sides share it says so where the
// contract is:
//
//	const Log anser.OnewayMethod[Record] = "Log.Write"
type OnewayMethod[A any] string

// Handle serves the method on s; see the function [HandleOneway].
func (m OnewayMethod[A]) Handle(s *Server, h func(ctx context.Context, in *A) error, opts ...HandleOption) error {
	return HandleOneway(s, string(m), h, opts...)
}

// Send sends a message to the method through c; see the function [Send].
func (m OnewayMethod[A]) Send(ctx context.Context, c *Client, in *A, opts ...CallOption) error {
	return Send(ctx, c, string(m), in, opts...)
}

// Send calls the method oneway: nothing comes back, not even an error, and the message arrives at most once.
//
// A nil error says that the message is in the hands of a connection: it waits to be written, or was. If the
// connection is lost, so is the message. Until then Send looks for another instance as [Call] does, so that an
// error says that nothing was sent. The context and the time of the call bound this, and the handler. Send
// waits while the connection has 1 MiB of requests that the server does not take.
//
// Any method may be called oneway. A server drops the reply, and refuses a oneway call that is over a limit
// without a word: it counts it.
//
// Of the fail modes, [Backup] and [Fork] make no sense here and are refused, as is an [IdempotencyKey].
func Send[A any](ctx context.Context, c *Client, method string, in *A, opts ...CallOption) error {
	return c.Send(ctx, method, in, opts...)
}

// HandleOneway serves the method name, which is only ever called oneway, with h. A call that wants a reply
// is refused. What h returns goes nowhere: an error is counted (see [Server.Stats]), and what else is to
// be done about it, such as logging, is for h or an [Interceptor] to do. The rest is as for [Handle].
func HandleOneway[A any](s *Server, name string, h func(ctx context.Context, in *A) error, opts ...HandleOption) error {
	if h == nil {
		return s.refuseMethod(fmt.Errorf("method %q has no handler: the function is nil", name))
	}
	return s.add(opts, &method{
		name:       name,
		oneway:     true,
		newRequest: func() any { return new(A) },
		handle: func(ctx context.Context, in any) (any, error) {
			if c := callFrom(ctx); c != nil && !c.oneway {
				return nil, refusal(Unimplemented, "method %q is oneway: use anser.Send", name).WithRetryAfter(RetryNever)
			}
			return onewayReply, h(ctx, in.(*A))
		},
		request: reflect.TypeFor[A](),
		reply:   reflect.TypeFor[None](),
	})
}

// onewayReply stands for the reply of a call that has none.
var onewayReply = new(None)

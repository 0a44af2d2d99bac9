package anser

import (
	"context"
	"reflect"
)

// OnewayMethod is the name of a oneway method with the type of its message: neither a reply nor an
// error is sent back, and a message arrives at most once. As a constant that both sides share it
// documents the contract:
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

// Send calls the method oneway: nothing is sent back, not even an error, and the message arrives at
// most once.
//
// A nil error means that the message was handed to a connection: it was written or is waiting to
// be. If the connection is lost, so is the message. Before that, Send tries other instances as
// [Call] does, so an error means that nothing was sent. The context and the timeout of the call
// bound Send and the handler. Send blocks while the connection holds 1 MiB of requests that the
// server does not read.
//
// Any method may be called oneway. The server drops the reply. If a oneway call exceeds a limit,
// the server refuses it without an answer and counts it.
//
// The fail modes [Backup] and [Fork] make no sense here and are refused, as is an [IdempotencyKey].
func Send[A any](ctx context.Context, c *Client, method string, in *A, opts ...CallOption) error {
	return c.Send(ctx, method, in, opts...)
}

// HandleOneway serves the method name, which can only be called oneway, with h. A call that wants a
// reply is refused. The error of h is not sent anywhere; it is counted (see [Server.Stats]), and h
// or an [Interceptor] can log it. Otherwise HandleOneway is like [Handle].
func HandleOneway[A any](s *Server, name string, h func(ctx context.Context, in *A) error, opts ...HandleOption) error {
	if h == nil {
		return s.refuseMethod(errNilHandler(name))
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

// onewayReply is the reply of a method that has none.
var onewayReply = new(None)

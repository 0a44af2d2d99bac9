package anser

import "context"

// Method is the name of a method with the types of its request and reply. As a constant that both
// sides share it is a contract that the compiler checks:
//
//	const Mul anser.Method[Args, Reply] = "Arith.Mul"
type Method[A, R any] string

// Handle serves the method on s; see the function [Handle].
func (m Method[A, R]) Handle(s *Server, h func(ctx context.Context, in *A) (*R, error), opts ...HandleOption) error {
	return Handle(s, string(m), h, opts...)
}

// Call calls the method through c; see the function [Call].
func (m Method[A, R]) Call(ctx context.Context, c *Client, in *A, opts ...CallOption) (*R, error) {
	return Call[R](ctx, c, string(m), in, opts...)
}

// Go starts a call of the method through c; see the function [Go].
func (m Method[A, R]) Go(ctx context.Context, c *Client, in *A, opts ...CallOption) *Future[R] {
	return Go[R](ctx, c, string(m), in, opts...)
}

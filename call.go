package anser

import "context"

// Call calls the method with in and returns its reply. Only the type of the reply must be given:
//
//	reply, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{A: 7, B: 8})
//
// The error is an [*Error]; see [Client.Call].
func Call[R, A any](ctx context.Context, c *Client, method string, in *A, opts ...CallOption) (*R, error) {
	var x callState
	if err := c.begin(ctx, &x, method, in, (*R)(nil), nil, opts); err != nil {
		return nil, x.end(ctx, c, method, err)
	}
	out, err := new(R), error(nil)
	if x.k == nil {
		err = c.callWithMode(x.context(ctx), method, in, out, x.o, x.by)
	} else {
		err = c.complete(x.context(ctx), &x, out, true)
	}
	if err = x.end(ctx, c, method, err); err != nil {
		return nil, err
	}
	return out, nil
}

package anser

import "context"

// Call calls the method with in and returns its reply. Only the type of the reply has to be written:
//
//	reply, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{A: 7, B: 8})
//
// The error is an [*Error]; see [Client.Call].
func Call[R, A any](ctx context.Context, c *Client, method string, in *A, opts ...CallOption) (*R, error) {
	out := new(R)
	if err := c.Call(ctx, method, in, out, opts...); err != nil {
		return nil, err
	}
	return out, nil
}

// Future is the result of a call that was started with [Go].
type Future[R any] struct {
	done  chan struct{}
	reply *R
	err   error
}

// Go starts a call and returns at once. The call is bound to ctx like that of [Call].
func Go[R, A any](ctx context.Context, c *Client, method string, in *A, opts ...CallOption) *Future[R] {
	f := &Future[R]{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.reply, f.err = Call[R](ctx, c, method, in, opts...)
	}()
	return f
}

// Done is closed when the call is over, for use in a select.
func (f *Future[R]) Done() <-chan struct{} { return f.done }

// Wait returns what [Call] would have returned, once the call is over. It may be called any number
// of times. To give up earlier, cancel the context of the call.
func (f *Future[R]) Wait() (*R, error) {
	<-f.done
	return f.reply, f.err
}

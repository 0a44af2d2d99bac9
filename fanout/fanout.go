// Package fanout calls a method on all instances of a service concurrently, with a result per
// instance: Broadcast if a number of them must succeed, Inform if every answer counts by itself,
// and Send for messages without replies.
//
// Each instance gets a call of its own, through the client's interceptors, with the caller's
// context. By default the fail mode is [anser.Failfast], so that an instance that is down fails at
// once and does not delay the others' results. A call never goes to an instance other than its
// own.
package fanout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// Result is the result of the call to one instance.
type Result[R any] struct {
	Instance registry.Instance
	Reply    *R    // nil after an error
	Err      error // an [*anser.Error], or an interceptor's error
	Duration time.Duration
}

// Need is the number of instances that must succeed.
type Need struct{ n int }

// All means every instance.
var All = Need{}

// AtLeast means n of the instances; 0 or less means All.
func AtLeast(n int) Need { return Need{max(n, 0)} }

// Broadcast calls the method on all instances, and waits for all of them. The results are ordered
// by the instances' keys. The error is nil if enough calls succeeded; otherwise it contains their
// number and wraps the errors of the others. If there are fewer instances than needed, or none,
// nothing is sent.
func Broadcast[R, A any](ctx context.Context, c *anser.Client, method string, in *A, need Need, opts ...anser.CallOption) ([]Result[R], error) {
	list, err := instances(ctx, c, method)
	if err != nil {
		return nil, err
	}
	n := need.n
	if need == All {
		n = len(list)
	}
	if n > len(list) {
		return nil, fmt.Errorf("broadcast %s: %d instances are needed and %d are known: nothing was sent", method, n, len(list))
	}
	results := each(list, func(o anser.CallOption) (*R, error) {
		return anser.Call[R](ctx, c, method, in, with(opts, o)...)
	})
	var failed []error
	for _, r := range results {
		if r.Err != nil {
			failed = append(failed, r.Err)
		}
	}
	if good := len(list) - len(failed); good < n {
		return results, fmt.Errorf("broadcast %s: %d of %d instances succeeded and %d are needed: %w", method, good, len(list), n, errors.Join(failed...))
	}
	return results, nil
}

// Inform calls the method on all instances and waits for all of them. Their errors are only in the
// results; the error means that there is no instance, or that the client did not know the
// instances in time.
func Inform[R, A any](ctx context.Context, c *anser.Client, method string, in *A, opts ...anser.CallOption) ([]Result[R], error) {
	list, err := instances(ctx, c, method)
	if err != nil {
		return nil, err
	}
	return each(list, func(o anser.CallOption) (*R, error) {
		return anser.Call[R](ctx, c, method, in, with(opts, o)...)
	}), nil
}

// Send sends a oneway message to all instances, like [anser.Send] to one: a result without an
// error means that the message was passed to a connection. The replies are nil.
func Send[A any](ctx context.Context, c *anser.Client, method string, in *A, opts ...anser.CallOption) ([]Result[anser.None], error) {
	list, err := instances(ctx, c, method)
	if err != nil {
		return nil, err
	}
	return each(list, func(o anser.CallOption) (*anser.None, error) {
		return nil, anser.Send(ctx, c, method, in, with(opts, o)...)
	}), nil
}

// with puts the mode before the options, which may override it, and the instance after them.
func with(opts []anser.CallOption, at anser.CallOption) []anser.CallOption {
	all := make([]anser.CallOption, 0, len(opts)+2)
	all = append(all, anser.WithFailMode(anser.Failfast))
	return append(append(all, opts...), at)
}

func instances(ctx context.Context, c *anser.Client, method string) ([]registry.Instance, error) {
	if ctx == nil {
		return nil, fmt.Errorf("call %s at all instances: the context is nil: pass context.Background()", method)
	}
	list, err := c.Instances(ctx)
	if err != nil {
		return nil, fmt.Errorf("call %s at all instances: %w", method, err)
	}
	return list, nil
}

// each calls all instances concurrently.
func each[R any](list []registry.Instance, call func(at anser.CallOption) (*R, error)) []Result[R] {
	results := make([]Result[R], len(list))
	var wg sync.WaitGroup
	for i, in := range list {
		wg.Go(func() {
			began := time.Now()
			reply, err := call(anser.At(in.Key()))
			results[i] = Result[R]{in, reply, err, time.Since(began)}
		})
	}
	wg.Wait()
	return results
}

// Package fanout calls a method at all instances of a service at once, and has a result for each: Broadcast
// where enough of them must succeed, Inform where every answer counts for itself, and Send for messages
// without replies.
//
// Each instance gets a call of its own, through the client's interceptors, with the context of all. Unless an
// option says otherwise its fail mode is [anser.Failfast], so that an instance that is down is found out at
// once and does not hold up the others' results. A call never goes to another instance than its own.
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

// Result is what became of the call to one instance.
type Result[R any] struct {
	Instance registry.Instance
	Reply    *R    // nil after an error
	Err      error // an [*anser.Error], or what an interceptor returned
	Duration time.Duration
}

// Need says how many instances must succeed.
type Need struct{ n int }

// All is every instance.
var All = Need{}

// AtLeast is n of the instances; 0 and less is All.
func AtLeast(n int) Need { return Need{max(n, 0)} }

// Broadcast calls the method at all instances, and waits for all of them. The results are in the order of the
// instances' keys. The error is nil if as many succeeded as are needed; otherwise it says how many did, and
// has their errors in its chain. When there are fewer instances than are needed, or none, nothing is sent.
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

// Inform calls the method at all instances and waits for all of them. Their errors are in the results alone; the
// error says that there is no instance, or that the client could not find out in time.
func Inform[R, A any](ctx context.Context, c *anser.Client, method string, in *A, opts ...anser.CallOption) ([]Result[R], error) {
	list, err := instances(ctx, c, method)
	if err != nil {
		return nil, err
	}
	return each(list, func(o anser.CallOption) (*R, error) {
		return anser.Call[R](ctx, c, method, in, with(opts, o)...)
	}), nil
}

// Send sends a oneway message to all instances, as [anser.Send] does to one: a result without an error says that
// the message is in the hands of a connection. The replies are nil.
func Send[A any](ctx context.Context, c *anser.Client, method string, in *A, opts ...anser.CallOption) ([]Result[anser.None], error) {
	list, err := instances(ctx, c, method)
	if err != nil {
		return nil, err
	}
	return each(list, func(o anser.CallOption) (*anser.None, error) {
		return nil, anser.Send(ctx, c, method, in, with(opts, o)...)
	}), nil
}

// with puts the mode before the options, which may set another, and the instance behind them.
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

// each makes a call to each instance at the same time.
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

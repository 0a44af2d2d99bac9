// Package timeout bounds the time of a server's handlers.
package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/wire"
)

// Option configures the interceptor.
type Option func(*options) error

type options struct {
	all     limits
	methods map[string]limits
}

// limits are timeouts; 0 means none.
type limits struct{ normal, most time.Duration }

// Default sets the timeout of calls without a deadline. By default they have none.
func Default(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("timeout.Default(%v): want a time above 0", d)
		}
		o.all.normal = d
		return nil
	}
}

// Max bounds the timeout of all calls to d, whatever their deadlines are. By default callers
// decide.
func Max(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("timeout.Max(%v): want a time above 0", d)
		}
		o.all.most = d
		return nil
	}
}

// Method sets both for one method, by its canonical name, and overrides Default and Max. 0 means
// none.
func Method(name string, normal, most time.Duration) Option {
	return func(o *options) error {
		if err := wire.CheckMethodName(name); err != nil {
			return fmt.Errorf("timeout.Method: %w", err)
		}
		if normal < 0 || most < 0 {
			return fmt.Errorf("timeout.Method(%q, %v, %v): want times of at least 0", name, normal, most)
		}
		if _, ok := o.methods[name]; ok {
			return fmt.Errorf("timeout.Method: %q is named twice", name)
		}
		o.methods[name] = limits{normal, most}
		return nil
	}
}

// New returns an interceptor for servers: the context of a handler ends after the timeout of its
// method, or at its caller's deadline if that is earlier. It cannot stop a handler that ignores
// its context. If a handler returns the context's error, the caller receives DeadlineExceeded with
// the limit.
//
// On a client it does the same for the client's calls, all attempts together; anser.Timeout does
// that without an interceptor. Streams are not limited, except those of a server whose method has
// a timeout of its own ([Method]). New fails for invalid options.
func New(opts ...Option) (anser.Interceptor, error) {
	o := &options{methods: make(map[string]limits)}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("timeout.New: an option is nil"))
			continue
		}
		errs = append(errs, opt(o))
	}
	if o.all == (limits{}) && len(o.methods) == 0 {
		errs = append(errs, errors.New("timeout.New: there is nothing to bound: add timeout.Default, timeout.Max or timeout.Method"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return o.intercept, nil
}

func (o *options) intercept(next anser.Func) anser.Func {
	return func(ctx context.Context, inv *anser.Invocation) error {
		l, ok := o.methods[inv.Method]
		if inv.Stream && !(inv.Server && ok) {
			return next(ctx, inv) // on a client it returns when the stream is open, and ctx must stay valid
		}
		if !ok {
			l = o.all
		}
		d, name := l.of(ctx)
		if d == 0 {
			return next(ctx, inv)
		}
		over := &cause{d, name}
		bounded, cancel := context.WithTimeoutCause(ctx, d, over)
		defer cancel()
		err := next(bounded, inv)
		if inv.Server && context.Cause(bounded) == error(over) && isOfContext(err) {
			return anser.Errorf(anser.DeadlineExceeded, "%w", error(over))
		}
		return err
	}
}

// of returns the timeout to apply to the context and the name of its limit, or 0.
func (l limits) of(ctx context.Context) (time.Duration, string) {
	deadline, ok := ctx.Deadline()
	switch {
	case ok && (l.most == 0 || time.Until(deadline) <= l.most):
		return 0, ""
	case ok || l.normal == 0 || l.most != 0 && l.most < l.normal:
		return l.most, "maximum"
	}
	return l.normal, "default"
}

// isOfContext reports whether a handler returned its context's error. Its own errors are kept.
func isOfContext(err error) bool {
	if _, own := errors.AsType[*anser.Error](err); own {
		return false
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// cause is the reason why a context ended.
type cause struct {
	limit time.Duration
	name  string
}

func (c *cause) Error() string {
	return fmt.Sprintf("the handler did not end within %v, the %s time of the method on this server (interceptor/timeout)", c.limit, c.name)
}

// Is makes the cause match like the context's error.
func (c *cause) Is(target error) bool { return target == context.DeadlineExceeded }

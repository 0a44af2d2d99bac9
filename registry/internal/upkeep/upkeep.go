// Package upkeep is what registries on a server share: a Ledger of what callers want there, an Announcer, which
// keeps instances in the registry, Follow, which keeps a reader current, and Life, which ends both.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// MaxRenewal is the longest pause between two renewals. What the registry has lost is noticed after it at
// the latest, which has to leave room in the five seconds after which the instances are back.
const MaxRenewal = 3 * time.Second

// Renewal returns the pause between two renewals, so that three fit into ttl.
func Renewal(ttl time.Duration) time.Duration { return min(ttl/3, MaxRenewal) }

// hopeless is an error that trying again cannot mend.
type hopeless struct{ error }

func (h hopeless) Unwrap() error { return h.error }

// Hopeless marks an error as one that trying again cannot mend.
func Hopeless(err error) error { return hopeless{err} }

// IsHopeless reports whether err, or what it wraps, was marked by Hopeless.
func IsHopeless(err error) bool {
	_, ok := errors.AsType[hopeless](err)
	return ok
}

// Because returns an error that is err and says why it came to that, where there is a reason.
func Because(err, reason error) error {
	if reason == nil || errors.Is(reason, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}

// Delay is the pause before a request is made again: 50 ms and growing, at most 1 s, with jitter so that a
// thousand processes do not come back at once. The zero value is ready for use.
type Delay struct{ n int }

// Wait sleeps, and reports false when ctx ended or something came from stop instead. stop may be nil.
func (d *Delay) Wait(ctx context.Context, stop <-chan struct{}) bool {
	d.n++
	full := min(50*time.Millisecond<<min(d.n-1, 10), time.Second)
	timer := time.NewTimer(full/2 + rand.N(full/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	case <-timer.C:
		return true
	}
}

// Retry makes a request until it succeeds, is hopeless, or ctx is done; it then also says why it had not
// succeeded before.
func Retry(ctx context.Context, request func(context.Context) error) error {
	var delay Delay
	var reason error
	for {
		if ctx.Err() != nil {
			return Because(context.Cause(ctx), reason)
		}
		err := request(ctx)
		if err == nil || IsHopeless(err) {
			return err
		}
		if ctx.Err() == nil {
			reason = err
		}
		delay.Wait(ctx, nil)
	}
}

// Life is how long a registry lasts. NewLife makes one. All methods are safe for concurrent use.
type Life struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex // guards closed, and running against a late start
	closed  bool
	running sync.WaitGroup // what Go and Do have begun
}

// NewLife returns a life that lasts until End.
func NewLife() *Life {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Life{ctx: ctx, cancel: cancel}
}

// Context ends with the life, and has registry.ErrClosed as its cause.
func (l *Life) Context() context.Context { return l.ctx }

// Within returns a context that also ends, with registry.ErrClosed as its cause, when the life does.
func (l *Life) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if l.ctx.Err() != nil {
		cancel(registry.ErrClosed) // now, and not on the goroutine of AfterFunc
	}
	stop := context.AfterFunc(l.ctx, func() { cancel(registry.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// Bind does what Within does, and fails with registry.ErrClosed after the life.
func (l *Life) Bind(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if l.ctx.Err() != nil {
		return nil, nil, registry.ErrClosed
	}
	ctx, cancel := l.Within(ctx)
	return ctx, cancel, nil
}

// Ask makes a request that may be made again: see Retry. Its errors begin with what, but for ErrClosed after the
// life.
func (l *Life) Ask(ctx context.Context, what string, request func(context.Context) error) error {
	ctx, cancel, err := l.Bind(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := Retry(ctx, request); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Go runs f on a goroutine that End waits for, unless the life is over.
func (l *Life) Go(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.running.Go(f)
	return true
}

// Do calls f, for which End waits, and returns its error. After the life it returns registry.ErrClosed instead.
func (l *Life) Do(f func() error) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return registry.ErrClosed
	}
	l.running.Add(1)
	l.mu.Unlock()
	defer l.running.Done()
	return f()
}

// End ends the life and waits for what Go and Do have begun.
func (l *Life) End() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel(registry.ErrClosed)
	l.running.Wait()
}

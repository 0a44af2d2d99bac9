// Package upkeep is the common part of registries on servers: a Ledger of the wanted records, an
// Announcer, which keeps instances in the registry, Follow, which keeps a watcher current, and
// Life, which ends both.
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

// MaxRenewal is the longest interval between renewals. A lost record is noticed after at most that
// time, and must be back within five seconds after the loss.
const MaxRenewal = 3 * time.Second

// Renewal returns the interval between renewals, so that three fit into ttl.
func Renewal(ttl time.Duration) time.Duration { return min(ttl/3, MaxRenewal) }

// hopeless is an error for which a retry is pointless.
type hopeless struct{ error }

func (h hopeless) Unwrap() error { return h.error }

// Hopeless marks an error for which a retry is pointless.
func Hopeless(err error) error { return hopeless{err} }

// IsHopeless reports whether err, or an error that it wraps, was marked by Hopeless.
func IsHopeless(err error) bool {
	_, ok := errors.AsType[hopeless](err)
	return ok
}

// Because returns an error that wraps err and its reason, or err if reason is nil.
func Because(err, reason error) error {
	if reason == nil || errors.Is(reason, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}

// Delay is the backoff before a request is repeated: it begins at 50 ms and grows to 1 s, with
// jitter so that a thousand processes do not come back at the same time. The zero value is ready
// for use.
type Delay struct{ n int }

// Wait sleeps, and reports false if ctx ended or stop received a token first. stop may be nil.
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

// Retry makes a request until it succeeds, fails permanently, or ctx is done; in the last case the
// error includes the last failure.
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

// Life is the lifetime of a registry. NewLife returns one. All methods are safe for concurrent
// use.
type Life struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex // guards closed, and orders running.Add before running.Wait
	closed  bool
	running sync.WaitGroup // the functions of Go and Do
}

// NewLife returns a Life that ends with End.
func NewLife() *Life {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Life{ctx: ctx, cancel: cancel}
}

// Context returns a context that ends with the life, with the cause registry.ErrClosed.
func (l *Life) Context() context.Context { return l.ctx }

// Within returns a copy of ctx that also ends with the life, then with the cause
// registry.ErrClosed.
func (l *Life) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if l.ctx.Err() != nil {
		cancel(registry.ErrClosed) // now, not on the goroutine of AfterFunc
	}
	stop := context.AfterFunc(l.ctx, func() { cancel(registry.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// Bind is like Within, but fails with registry.ErrClosed after the life has ended.
func (l *Life) Bind(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if l.ctx.Err() != nil {
		return nil, nil, registry.ErrClosed
	}
	ctx, cancel := l.Within(ctx)
	return ctx, cancel, nil
}

// Ask makes an idempotent request: see Retry. Its errors begin with what, except ErrClosed after
// the life has ended.
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

// Go runs f on a goroutine that End waits for. It returns false if the life has ended.
func (l *Life) Go(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.running.Go(f)
	return true
}

// Do calls f, which End waits for, and returns its error. After the end of the life it returns
// registry.ErrClosed instead.
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

// End ends the life and waits for the functions that Go and Do have started.
func (l *Life) End() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel(registry.ErrClosed)
	l.running.Wait()
}

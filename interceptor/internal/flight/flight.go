// Package flight combines concurrent calls for the same result into one.
package flight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// ErrExited is the error of callers whose work ended its goroutine with runtime.Goexit.
var ErrExited = errors.New("the shared call ended its goroutine with runtime.Goexit, as t.FailNow does")

// ErrClosed is returned if there is nothing in flight to join and the group is closed.
var ErrClosed = errors.New("the group of shared calls is closed")

// Work computes the result that callers wait for.
type Work[V any] func(ctx context.Context) V

// Group is a set of works in flight, one per key. The zero value is ready; all methods are safe
// for concurrent use.
type Group[K comparable, V any] struct {
	mu      sync.Mutex // guards the fields below
	flights map[K]*flight[V]
	closed  bool
	wg      sync.WaitGroup
}

// flight is a work in flight.
type flight[V any] struct {
	ctx     context.Context // of the work, which may outlive each of its callers
	cancel  context.CancelFunc
	waiting int // number of callers, guarded by the group's mu

	done  chan struct{} // closed when the fields below are set
	value V
	panic *Panic // nil if it did not panic
	err   error
	cut   bool
}

// Ride describes how a caller got its result.
type Ride struct {
	Joined bool // it joined a work in flight
	Cut    bool // the work's context had ended when it was done: by its bound, or by Close
}

// Panic is the value and the stack of a panicking work. Do panics with it in every caller.
type Panic struct {
	Value any
	Stack []byte
}

// String returns both, for logs.
func (p *Panic) String() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Do waits for the work of the key, and starts it unless it is in flight: prepare is called before
// Do waits, and its result runs on a goroutine of its own. The work's context has the values of
// the context that started it, but not its cancellation: it ends after bound (0 means never), or
// when no caller waits any more. Each caller keeps its own deadline, which is reported by err.
func (g *Group[K, V]) Do(ctx context.Context, key K, bound time.Duration, prepare func() Work[V]) (v V, r Ride, err error) {
	g.mu.Lock()
	f := g.flights[key]
	if r.Joined = f != nil; !r.Joined {
		if f = g.addLocked(ctx, key, bound); f == nil {
			g.mu.Unlock()
			return v, r, ErrClosed
		}
	}
	f.waiting++
	g.mu.Unlock()
	if !r.Joined {
		g.launch(key, f, prepare)
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		g.leave(key, f)
		return v, r, ctx.Err()
	}
	if f.panic != nil {
		panic(f.panic)
	}
	r.Cut = f.cut
	return f.value, r, f.err
}

// Start starts the work of the key without a caller, unless it is in flight or the group is
// closed. It reports whether it did.
func (g *Group[K, V]) Start(ctx context.Context, key K, bound time.Duration, prepare func() Work[V]) bool {
	g.mu.Lock()
	if g.flights[key] != nil {
		g.mu.Unlock()
		return false
	}
	f := g.addLocked(ctx, key, bound)
	if f != nil {
		f.waiting++ // it continues whichever callers join and leave
	}
	g.mu.Unlock()
	if f != nil {
		g.launch(key, f, prepare)
	}
	return f != nil
}

// addLocked adds a flight, which launch must then start. It returns nil if the group is closed.
func (g *Group[K, V]) addLocked(ctx context.Context, key K, bound time.Duration) *flight[V] {
	if g.closed {
		return nil
	}
	f := &flight[V]{done: make(chan struct{}), err: ErrExited}
	f.ctx = context.WithoutCancel(ctx)
	if bound > 0 {
		f.ctx, f.cancel = context.WithTimeout(f.ctx, bound)
	} else {
		f.ctx, f.cancel = context.WithCancel(f.ctx)
	}
	if g.flights == nil {
		g.flights = make(map[K]*flight[V])
	}
	g.flights[key] = f
	g.wg.Add(1)
	return f
}

// launch prepares the work on this goroutine and runs it on another.
func (g *Group[K, V]) launch(key K, f *flight[V], prepare func() Work[V]) {
	flies := false
	defer func() {
		if !flies {
			g.land(key, f, recover())
		}
	}()
	work := prepare()
	flies = true
	go func() {
		defer func() { g.land(key, f, recover()) }()
		f.value = work(f.ctx)
		f.err = nil
	}()
}

// land ends a flight; p is the value of its panic, or nil.
func (g *Group[K, V]) land(key K, f *flight[V], p any) {
	if p != nil {
		f.panic = &Panic{p, debug.Stack()}
	}
	g.forget(key, f)
	f.cut = f.ctx.Err() != nil
	f.cancel()
	close(f.done)
	g.wg.Done()
}

func (g *Group[K, V]) forget(key K, f *flight[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forgetLocked(key, f)
}

func (g *Group[K, V]) forgetLocked(key K, f *flight[V]) {
	if g.flights[key] == f {
		delete(g.flights, key)
	}
}

// leave removes one caller. The last one cancels the work, and a later caller starts a new one.
func (g *Group[K, V]) leave(key K, f *flight[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		g.forgetLocked(key, f)
		f.cancel()
	}
}

// Close cancels the works in flight and waits for them. Nothing is started afterwards. It may be
// called more than once.
func (g *Group[K, V]) Close() {
	g.mu.Lock()
	g.closed = true
	for _, f := range g.flights {
		f.cancel()
	}
	g.mu.Unlock()
	g.wg.Wait()
}

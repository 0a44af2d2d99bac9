// Package flight lets those who want the same thing at the same time share the work for it.
package flight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// ErrExited is the error of those whose work ended its goroutine with runtime.Goexit.
var ErrExited = errors.New("the shared call ended its goroutine with runtime.Goexit, as t.FailNow does")

// ErrClosed is returned when there is nothing in flight to join and the group is closed.
var ErrClosed = errors.New("the group of shared calls is closed")

// Work does what several wait for.
type Work[V any] func(ctx context.Context) V

// Group is a set of works in flight, one for each key. The zero value is ready; all methods are safe
// for concurrent use.
type Group[K comparable, V any] struct {
	mu      sync.Mutex // guards what follows
	flights map[K]*flight[V]
	closed  bool
	wg      sync.WaitGroup
}

// flight is a work that is being done.
type flight[V any] struct {
	ctx     context.Context // of the work, which outlives each of those who wait
	cancel  context.CancelFunc
	waiting int // guarded by the group's mu

	done  chan struct{} // closed when what follows is there
	value V
	panic *Panic // nil: it did not
	err   error
	cut   bool
}

// Ride is how one came by a work.
type Ride struct {
	Joined bool // it was in flight already
	Cut    bool // its context had ended when it was done: by its bound, or by Close
}

// Panic is what a work panicked with, and where. Those who wait for it panic with it in their turn.
type Panic struct {
	Value any
	Stack []byte
}

// String tells both, for whoever recovers and logs.
func (p *Panic) String() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Do waits for the work of the key, and starts it unless it is in flight: prepare is called before Do
// goes on, and what it returns is done on a goroutine of its own. The work's context has the values
// of the context that started it, but not its end: it ends after bound (0: never), or when nobody
// waits any more. So each waiter has its own time, whose end is err.
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

// Start starts the work of the key for nobody, unless it is in flight or the group is closed. It reports
// whether it did.
func (g *Group[K, V]) Start(ctx context.Context, key K, bound time.Duration, prepare func() Work[V]) bool {
	g.mu.Lock()
	if g.flights[key] != nil {
		g.mu.Unlock()
		return false
	}
	f := g.addLocked(ctx, key, bound)
	if f != nil {
		f.waiting++ // it is wanted, whoever comes and goes
	}
	g.mu.Unlock()
	if f != nil {
		g.launch(key, f, prepare)
	}
	return f != nil
}

// addLocked enters a flight, which launch has to follow. It returns nil when the group is closed.
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

// launch prepares the work here and does it elsewhere.
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

// land ends a flight, which panicked with p unless that is nil.
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

// leave takes one waiter away. The last one ends the work, and who comes then begins a new one.
func (g *Group[K, V]) leave(key K, f *flight[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		g.forgetLocked(key, f)
		f.cancel()
	}
}

// Close cancels what is in flight and waits for it. Nothing is started afterwards. It may be called
// more than once.
func (g *Group[K, V]) Close() {
	g.mu.Lock()
	g.closed = true
	for _, f := range g.flights {
		f.cancel()
	}
	g.mu.Unlock()
	g.wg.Wait()
}

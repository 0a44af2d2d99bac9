package anser

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
)

// Future is the result of a call that was started with [Go]. Its methods are safe for concurrent
// use.
type Future[R any] struct {
	pending
	reply R
}

// Go starts a call and returns at once. The call is bound to ctx as with [Call]: when ctx ends,
// the call ends. An error that [Call] would return at once becomes the error of the future.
//
// A call in flight is an entry in tables, not a goroutine: a million calls take some hundred bytes
// each. A call has a goroutine if the client has interceptors, and with [At] or a fail mode from
// [Failsafe] on. A call that is retried has one until it is sent; so has a call that waits for a
// connection, or for room on a connection with 1 MiB of requests that the server does not read. A
// client has up to 1,024 waiting calls; beyond that, Go waits until one of them is sent, for as
// long as the call may take.
//
// The first goroutine that waits decodes the reply, and its bytes are kept until then. The request
// is encoded before Go returns; in may be changed afterwards, except for calls that have a
// goroutine from the start.
func Go[R, A any](ctx context.Context, c *Client, method string, in *A, opts ...CallOption) *Future[R] {
	f := new(Future[R])
	c.launch(ctx, &f.pending, method, in, &f.reply, opts)
	return f
}

// Done is closed when the call is over, for use in a select. Wait then returns without waiting.
func (f *Future[R]) Done() <-chan struct{} { return f.doneChannel() }

// Wait returns what [Call] would have returned, once the call is over. It may be called any number
// of times. To give up earlier, cancel the context of the call, or the future.
func (f *Future[R]) Wait() (*R, error) {
	f.await(context.Background())
	if err := f.result(); err != nil {
		return nil, err
	}
	return &f.reply, nil
}

// Cancel ends the call, as the end of its context does, and tells the server. It does nothing to a
// call that is over, and does not wait.
func (f *Future[R]) Cancel() { f.stop() }

// Awaitable is a [Future] of any type.
type Awaitable interface {
	Done() <-chan struct{}
	started() *pending
}

// WaitAll returns when all futures are over: nil, or the error of the first one in the list that
// failed. When ctx ends first it returns ctx's error; the calls go on. Futures of different types
// are given as WaitAll[anser.Awaitable](ctx, a, b).
func WaitAll[F Awaitable](ctx context.Context, futures ...F) error {
	var failed error
	for _, f := range futures {
		p := f.started()
		if err := p.await(ctx); err != nil {
			return err
		}
		if err := p.result(); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// WaitAny returns the index of a future that is over, once there is one; its Wait reports whether
// the call failed. If ctx ends first, WaitAny returns −1 and ctx's error. Without futures it waits
// for ctx.
func WaitAny[F Awaitable](ctx context.Context, futures ...F) (int, error) {
	woken := make(chan struct{}, 1)
	defer func() {
		for _, f := range futures {
			f.started().unsubscribe(woken)
		}
	}()
	for i, f := range futures {
		if !f.started().subscribe(woken) {
			return i, nil
		}
	}
	select {
	case <-woken:
	case <-ctx.Done():
		return -1, ctx.Err()
	}
	return slices.IndexFunc(futures, func(f F) bool { return f.started().over.Load() }), nil
}

// pending is a call without a waiting goroutine. The reader goroutine of its connection ends it.
//
// It keeps the context of the call, which is needed for what follows the first attempt.
type pending struct {
	c     *Client
	ctx   context.Context
	ends  <-chan struct{} // of ctx
	o     *callOptions
	m     *clientMethod
	codec codec.Codec
	out   any // where the reply goes
	e     *endpoint
	end   forwardEnd // gets the result in place of waiting goroutines; nil for a future

	followed *followedCall // of which observers learn, or nil

	over atomic.Bool

	// Guarded by the mutex of the client's watches.
	watch      *contextWatch
	prev, next *pending

	mu      sync.Mutex      // guards the fields below
	k       *call           // nil once result has been called
	conn    *callerHalf     // on which k is open
	stopped bool            // by stop
	later   *laterAttempts  // nil for a call that needs no goroutine
	done    chan struct{}   // made by the first call of Done
	waiter  chan struct{}   // gets a value when the call is over
	waiters []chan struct{} // further ones
	err     error
}

func (p *pending) started() *pending { return p }

// launch starts a call whose reply goes to out, which is zero and owned by p.
func (c *Client) launch(ctx context.Context, p *pending, name string, in, out any, opts []CallOption) {
	if err := c.usable(ctx, name); err != nil {
		p.finish(err)
		return
	}
	p.c, p.ctx, p.out, p.o = c, ctx, out, &c.o.call
	if len(opts) > 0 {
		p.o = p.o.with(opts)
	}
	if c.o.observers.followCalls() {
		p.followed = c.callBegan(ctx, name, callKind{})
		ctx = p.followed.ctx
		p.ctx = ctx
	}
	if c.intercepts(name) || p.o.mode > Failtry || p.o.pinned {
		go p.perform(name, in)
		return
	}
	m, err := c.method(name)
	if err != nil {
		p.finish(err)
		return
	}
	k := c.pool.getStarted()
	k.fresh, k.pending, k.atOnce = true, p, true
	p.k, p.m = k, m
	if p.followed != nil {
		k.began, k.traced = p.followed.began, &p.followed.by
	} else {
		k.began = mono.Now()
	}
	cd, fault := c.encode(ctx, k, m, in, out, p.o)
	if fault != nil {
		fault.Method = name
		p.finish(fault)
		return
	}
	p.codec, p.ends = cd, ctx.Done()
	c.budget.Deposit(k.slot)
	if p.e = c.pick(k, m); p.e != nil {
		if fault = p.start(ctx); fault == nil {
			return
		}
		if fault != errWouldWait {
			p.failed(fault)
			return
		}
	}
	p.startLater()
}

// start starts an attempt at p.e. If it succeeds, the reader goroutine of the connection continues
// with attemptDone, and the caller no longer owns the call.
func (p *pending) start(ctx context.Context) *Error {
	conn, fault := p.k.start(ctx, p.e, p.m)
	if fault != nil {
		p.startOn(nil)
		return fault
	}
	conn.ensureReader()
	if p.ends != nil {
		p.c.watches.add(p)
	}
	return nil
}

// startOn records the connection on which an attempt is about to start, for stop. It is not
// inlined, to keep the stacks of waiting callers small: they go through endpoint.start too.
//
//go:noinline
func (p *pending) startOn(conn *callerHalf) {
	p.mu.Lock()
	p.conn = conn
	p.mu.Unlock()
}

// attemptDone records that the attempt is over. It runs on the goroutine that ended it, and does
// not block.
func (p *pending) attemptDone() {
	p.mu.Lock()
	conn := p.conn
	p.conn = nil // stop leaves k alone from here on
	p.mu.Unlock()
	if fault := p.k.settle(p.e, conn, p.m, p.k.failed); fault != nil {
		p.failed(fault)
		return
	}
	p.finish(nil)
}

// failed ends the call after an attempt that failed with fault, or continues with other attempts.
// It does not block.
func (p *pending) failed(fault *Error) {
	if p.later == nil && isFinal(fault, p.o, p.m) {
		fault.Method = p.m.name
		p.finish(fault)
		return
	}
	go p.proceed(fault)
}

// finish records that the call is over, and wakes the waiting goroutines.
func (p *pending) finish(err error) {
	if f := p.followed; f != nil {
		p.followed = nil
		if p.e != nil {
			f.by.info.Address = p.e.Instance().Address
			p.k.notePick(&f.by.picked)
			if p.later != nil {
				f.by.info.Attempt, f.by.picked.failed = p.later.attempts.sent, p.later.attempts.list
			}
		}
		p.c.callEnded(f, err)
	}
	p.mu.Lock()
	p.err = err
	p.over.Store(true)
	if p.done != nil {
		close(p.done)
	}
	wake(p.waiter)
	for _, w := range p.waiters {
		wake(w)
	}
	p.waiter, p.waiters = nil, nil
	later := p.later
	p.mu.Unlock()
	if later != nil {
		later.cancel()
	}
	if p.ends != nil {
		p.c.watches.remove(p)
	}
	if p.end != nil {
		p.report()
	}
}

// by returns where the attempt that is answered is noted, or nil.
func (p *pending) by() *answer {
	if p.followed == nil {
		return nil
	}
	return &p.followed.by
}

func wake(w chan struct{}) {
	select {
	case w <- struct{}{}:
	default:
	}
}

// result returns the error of a call that is over. The first call of result decodes the reply and
// returns the buffers.
func (p *pending) result() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.k
	if k == nil {
		return p.err
	}
	p.k = nil
	if p.err == nil {
		if fault := k.decode(p.e, p.codec, p.out); fault != nil {
			if p.later != nil {
				p.later.attempts.note(k, p.e, fault)
				p.later.attempts.final(fault)
			}
			fault.Method = p.m.name
			p.err = fault
		}
	}
	if p.o.trailer != nil {
		*p.o.trailer = metadataOf(k.trailers)
	}
	p.c.pool.putStarted(k)
	return p.err
}

// stop ends the call.
func (p *pending) stop() {
	p.mu.Lock()
	p.stopped = true
	later := p.later
	var taken bool
	var outcome Outcome
	if p.conn != nil {
		taken, outcome = p.conn.cancel(p.k, isOver(p.ctx))
	}
	p.mu.Unlock()
	switch {
	case taken && p.ctx.Err() != nil:
		p.k.failed = contextFailure(p.ctx, outcome, PhaseWait)
		p.attemptDone()
	case taken:
		p.k.failed = failure(Canceled, outcome, PhaseWait, context.Canceled, "the call was cancelled")
		p.attemptDone()
	case later != nil:
		later.cancel()
	}
}

// closedChannel is the result of Done if the call was over before Done was called.
var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (p *pending) doneChannel() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		if p.over.Load() {
			return closedChannel
		}
		p.done = make(chan struct{})
	}
	return p.done
}

// await returns nil when the call is over, or the error of ctx when ctx ends first.
func (p *pending) await(ctx context.Context) error {
	if p.over.Load() {
		return nil
	}
	w := p.c.pool.getWaiter()
	if p.subscribe(w) {
		select {
		case <-w:
		case <-ctx.Done():
			p.unsubscribe(w)
			select {
			case <-w: // it came between the two
			default:
				p.c.pool.waiters.Put(w)
				return ctx.Err()
			}
		}
	}
	p.c.pool.waiters.Put(w)
	return nil
}

// subscribe makes w receive a value when the call is over. It returns false if it is over already.
func (p *pending) subscribe(w chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over.Load():
		return false
	case p.waiter == nil:
		p.waiter = w
	default:
		p.waiters = append(p.waiters, w)
	}
	return true
}

func (p *pending) unsubscribe(w chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiter == w {
		p.waiter = nil
	}
	p.waiters = slices.DeleteFunc(p.waiters, func(o chan struct{}) bool { return o == w })
}

package anser

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// callContext is the context of a handler. Most handlers never call Done, so the channel, the
// timer and the entry in the connection's table of cancellable calls are made on the first call
// of it.
type callContext struct {
	conn     *calleeHalf
	method   *method
	extras   *callExtras // nil: nothing
	trace    *heldTrace  // nil: none, and no memory for one unless there are extras
	id       uint64
	deadline mono.Time // 0: none
	attempt  uint8
	priority uint8 // and what the call has taken; see priorityBits
	codec    uint8
	oneway   bool

	state       atomic.Uint32 // fresh, cancellable, finished
	mu          sync.Mutex    // guards the fields below
	cancelState *cancelState
	trail       *[]wire.Pair // nil: none
}

// heldTrace is the trace context of a call, and the span that is its parent if an observer chose
// the trace context.
type heldTrace struct {
	Trace
	parent [8]byte
}

// callExtras is the data that few calls have. The context itself is kept small: one is made per
// call, and for a small message it is a large part of the garbage.
type callExtras struct {
	metadata  []byte // a block, or nil
	stream    *stream
	packing   *packing      // nil: the request names no compression
	key       string        // the idempotency key, or ""
	protocol  *ProtocolCall // nil: the call came over Anser's own protocol
	forwarded stopper       // nil: the server runs the call itself
}

// cancelState is the state that a context needs once its Done is called or a context is derived
// from it.
type cancelState struct {
	done  chan struct{}
	err   error
	timer *time.Timer
	after map[*func()]struct{}
}

const (
	fresh uint32 = iota
	cancellable
	finished
)

// stream returns the stream of the call, or nil.
func (c *callContext) stream() *stream {
	if c.extras == nil {
		return nil
	}
	return c.extras.stream
}

// isStream reports whether the call is a stream.
func (c *callContext) isStream() bool {
	k := c.protocolCall()
	return c.stream() != nil || k != nil && k.stream != nil
}

// callFrom returns the handler's context that ctx is derived from, or nil.
func callFrom(ctx context.Context) *callContext {
	if c, ok := ctx.(*callContext); ok {
		return c
	}
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(callKey{}).(*callContext)
	return c
}

func (c *callContext) inheritedMetadata() []byte {
	if c.extras == nil {
		return nil
	}
	return c.extras.metadata
}

func (c *callContext) inheritedTrace() *Trace {
	if c.trace == nil || !isTrace(&c.trace.Trace) {
		return nil
	}
	return &c.trace.Trace
}

// keepTrace makes t the trace context of the call, below parent, if there is memory for it. Giving
// memory to calls that have nothing else would cost each of them some.
func (c *callContext) keepTrace(t, parent *Trace) {
	if c.trace == nil {
		if c.extras == nil {
			return
		}
		c.trace = new(heldTrace)
	}
	c.trace.Trace, c.trace.parent = *t, parent.SpanID
}

func (c *callContext) isRetry() bool { return c.attempt > 0 }

// CallID returns the id by which a CANCEL finds the call.
func (c *callContext) CallID() uint64 { return c.id }

// Deadline returns the time at which the caller gives up, if it does.
func (c *callContext) Deadline() (time.Time, bool) {
	if c.deadline == 0 {
		return time.Time{}, false
	}
	return c.deadline.Wall(), true
}

// Value returns the call itself, which other functions of this package look up, and the values
// that another protocol has for the call.
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	if k := c.protocolCall(); k != nil && k.values != nil {
		return k.values.Value(key)
	}
	return nil
}

// Done is closed when the caller cancels, its deadline passes, its connection is lost, or the
// handler has returned.
func (c *callContext) Done() <-chan struct{} { return c.cancellation().done }

// Err returns why Done is closed, or nil while it is not.
func (c *callContext) Err() error {
	if c.state.Load() == fresh {
		if c.deadline == 0 || mono.Now() < c.deadline {
			return nil
		}
	}
	cut := c.cancellation()
	c.mu.Lock()
	defer c.mu.Unlock()
	return cut.err
}

// isOver reports whether the context ended before its handler began.
func (c *callContext) isOver() bool { return c.state.Load() == cancellable && c.Err() != nil }

// cancellation returns the state that ends the context, and makes it on the first call.
func (c *callContext) cancellation() *cancelState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancelState != nil {
		return c.cancelState
	}
	c.cancelState = &cancelState{done: make(chan struct{})}
	switch {
	case !c.state.CompareAndSwap(fresh, cancellable):
		c.endLocked(context.Canceled)
	case c.deadline != 0:
		d := mono.Until(c.deadline)
		if d <= 0 {
			c.endLocked(context.DeadlineExceeded)
		} else {
			c.cancelState.timer = time.AfterFunc(d, func() { c.end(context.DeadlineExceeded) })
		}
	}
	return c.cancelState
}

// end ends the context for the reason err.
func (c *callContext) end(err error) {
	c.mu.Lock()
	if c.cancelState == nil {
		// Done was not called yet; a later caller must see the end.
		c.cancelState = &cancelState{done: make(chan struct{})}
		c.state.CompareAndSwap(fresh, cancellable)
	}
	after := c.endLocked(err)
	c.mu.Unlock()
	for f := range after {
		go (*f)() // as context.AfterFunc promises
	}
	if c.extras != nil && c.extras.forwarded != nil {
		c.extras.forwarded.stop()
	}
}

// endLocked ends the context and returns the functions to start. The caller's CANCEL may overtake
// the timer of the deadline that both sides keep; that is still the deadline.
func (c *callContext) endLocked(err error) map[*func()]struct{} {
	if c.cancelState.err != nil {
		return nil
	}
	if c.deadline != 0 && mono.Now() >= c.deadline {
		err = context.DeadlineExceeded
	}
	c.cancelState.err = err
	close(c.cancelState.done)
	if c.cancelState.timer != nil {
		c.cancelState.timer.Stop()
	}
	after := c.cancelState.after
	c.cancelState.after = nil
	return after
}

// finish ends the context after its handler has returned.
func (c *callContext) finish() {
	if c.state.Swap(finished) == cancellable {
		c.end(context.Canceled)
	}
	if c.priority > priorityBits {
		c.releaseLimits()
	}
}

// AfterFunc lets package context derive a context without a goroutine.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	cut := c.cancellation()
	c.mu.Lock()
	defer c.mu.Unlock()
	if cut.err != nil {
		go f()
		return func() bool { return false }
	}
	if cut.after == nil {
		cut.after = make(map[*func()]struct{})
	}
	cut.after[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, ok := cut.after[&f]
		delete(cut.after, &f)
		return ok
	}
}

// setTrailer fails when the block would not fit the protocol's limits or those of the client.
func (c *callContext) setTrailer(p wire.Pair) error {
	limit := int(c.conn.peer.MaxMetadata)
	c.mu.Lock()
	defer c.mu.Unlock()
	size := metadataHead + pairSize(p)
	same := -1
	var trail []wire.Pair
	if c.trail != nil {
		trail = *c.trail
	}
	for i, o := range trail {
		if o.Key == p.Key {
			same = i
			continue
		}
		size += pairSize(o)
	}
	switch {
	case size > limit:
		return fmt.Errorf("set trailer %q: the trailers would be %d bytes, over the client's limit of %d", p.Key, size, limit)
	case same >= 0:
		trail[same] = p
	case len(trail) == wire.MaxPairs:
		return fmt.Errorf("set trailer %q: there are %d already, the limit", p.Key, wire.MaxPairs)
	default:
		trail = append(trail, p)
		c.trail = &trail
	}
	return nil
}

// The sizes of a metadata block and of an entry without its key and value.
const (
	metadataHead = 6
	pairHead     = 6
)

func pairSize(p wire.Pair) int { return pairHead + len(p.Key) + len(p.Value) }

// trailers returns the block of the trailers that the handler set, or nil.
func (c *callContext) trailers() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trail == nil {
		return nil
	}
	return wire.AppendMetadata(nil, *c.trail)
}

// codecOf returns the codec of the call's request and reply.
func (c *callContext) codecOf(*Invocation) codec.Codec {
	if k := c.protocolCall(); k != nil {
		return k.codec
	}
	return c.conn.server.codec(c.method, c.codec)
}

package anser

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/anser-rpc/anser/internal/mono"
)

// followedCall is a call, with all its attempts, of which observers learn. It is pooled.
type followedCall struct {
	ctx   context.Context // with which the call continues
	began mono.Time
	by    answer
}

// answer is what observers know of a call: the attempt that was answered, and the rest. The info is
// here, and observers get a pointer to it, since callers wait on stacks that must stay small: the
// collector copies each stack that grew by a copy of the info. See decision 71.
type answer struct {
	info CallInfo
	picked
	found Trace // the trace context of the caller's context, which that of the info replaces
}

// callKind distinguishes calls for observers.
type callKind struct{ stream, oneway, forward bool }

// traceOf implements traced.
func (by *answer) traceOf(ctx context.Context) (Trace, bool) {
	chosen := by.chosen()
	return chosen.traceOf(ctx)
}

func (by *answer) chosen() chosenTrace { return chosenTrace{by.info.Trace, by.found} }

// chosenTrace is the trace context that observers have chosen for a call, and the one that it
// replaces. Interceptors get a copy: one may go on with its call, against the rules, when the
// record of the call is that of another one.
type chosenTrace struct{ own, found Trace }

// traceOf implements traced. A trace context that was put into the context after the observers had
// chosen theirs is meant to be sent.
func (c *chosenTrace) traceOf(ctx context.Context) (Trace, bool) {
	t, ok := TraceFrom(ctx)
	if t == c.found && isTrace(&c.own) {
		return c.own, true
	}
	return t, ok
}

var followedCalls = sync.Pool{New: func() any { return new(followedCall) }}

// callBegan tells the observers that a call begins.
func (c *Client) callBegan(ctx context.Context, method string, kind callKind) *followedCall {
	f := followedCalls.Get().(*followedCall)
	f.ctx, f.began = ctx, mono.Now()
	info := &f.by.info
	info.Method, info.Target = method, c.observed
	info.Stream, info.Oneway, info.Forward = kind.stream, kind.oneway, kind.forward
	c.observeBegin(f)
	return f
}

func (c *Client) observeBegin(f *followedCall) {
	defer c.recoverObserver(f)
	info := &f.by.info
	if trace := c.o.observers.trace; trace != nil {
		f.by.found, _ = TraceFrom(f.ctx)
		info.Parent = f.by.found
		info.Trace, info.Parent = trace(f.ctx, info)
	}
	f.ctx = c.o.observers.callBegan(f.ctx, info)
}

// callEnded tells the observers that a call has ended. It is the last use of f.
func (c *Client) callEnded(f *followedCall, err error) {
	c.observeEnd(f, err)
	*f = followedCall{}
	followedCalls.Put(f)
}

func (c *Client) observeEnd(f *followedCall, err error) {
	defer c.recoverObserver(f)
	info := &f.by.info
	info.Duration, info.Err = mono.Since(f.began), err
	info.Attempts = f.by.failed
	info.Pick = Pick{Reason: f.by.reason, Balancer: c.balancer, Route: f.by.route}
	if e, ok := err.(*Error); ok {
		info.Address, info.Attempt, info.Attempts = e.Address, e.Attempt, e.Attempts
	}
	c.o.observers.callEnded(f.ctx, info)
}

// recoverObserver is deferred around observers of whole calls, which must not change their result.
func (c *Client) recoverObserver(f *followedCall) {
	if p := recover(); p != nil {
		c.o.log.Error("an observer of a call panicked", "method", f.by.info.Method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// beginFollowed begins a call of which observers learn, and returns its context.
//
//go:noinline
func (c *Client) beginFollowed(ctx context.Context, x *callState, name string) context.Context {
	x.followed = c.callBegan(ctx, name, callKind{})
	x.by = &x.followed.by
	return x.followed.ctx
}

// context returns the context with which the call goes on.
func (x *callState) context(ctx context.Context) context.Context {
	if x.followed != nil {
		return x.followed.ctx
	}
	return ctx
}

// end ends the call with err, which it returns.
func (x *callState) end(c *Client, err error) error {
	if x.followed != nil {
		c.callEnded(x.followed, err)
	}
	return err
}

// observeMade tells the observers of the client, once it is complete.
func (c *Client) observeMade() {
	c.reported = true
	c.o.observers.made(c)
}

// observe notifies the client's observers of an attempt that is about to be sent. An attempt that
// they refuse is over.
func (k *call) observe(ctx context.Context, e *endpoint, m *clientMethod) *Error {
	info := k.message(e, m)
	info.Bytes = len(k.frame) - int(k.head)
	if err := e.Host.observers.request(ctx, info); err != nil {
		e.Abort()
		err.Outcome, err.Phase, err.Address = NotSent, PhaseWrite, info.Address
		if err.RetryAfter == 0 {
			err.RetryAfter = RetryNever
		}
		return err
	}
	k.observed = ctx
	return nil
}

// observeReply notifies the observers of the result of an attempt.
func (k *call) observeReply(e *endpoint, m *clientMethod, err *Error) {
	ctx, info := k.observed, k.message(e, m)
	info.Duration = mono.Since(k.began)
	k.observed = nil
	if err == nil {
		info.Bytes = len(k.reply())
	} else {
		info.Err = err
	}
	e.Host.observers.reply(ctx, info)
}

func (k *call) message(e *endpoint, m *clientMethod) MessageInfo {
	return MessageInfo{Method: m.name, Address: e.Instance().Address, Attempt: int(k.frame[attemptOffset]), Codec: k.codec}
}

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
	ctx                     context.Context // with which the call continues
	method                  string
	began                   mono.Time
	by                      answer
	stream, oneway, forward bool
}

// answer is the attempt of a call that was answered, and what else observers know of the call.
type answer struct {
	address string
	attempt int
	picked

	trace, parent Trace // of the call, if an observer chooses them
	found         Trace // the trace context of the caller's context, which trace replaces
}

// traceOf returns the trace context that a call with ctx sends. One that was put into the context
// after the observers had chosen theirs is meant to be sent.
func (by *answer) traceOf(ctx context.Context) (Trace, bool) {
	t, ok := TraceFrom(ctx)
	if t == by.found && isTrace(&by.trace) {
		return by.trace, true
	}
	return t, ok
}

var followedCalls = sync.Pool{New: func() any { return new(followedCall) }}

// callBegan tells the observers that a call begins, which f describes.
func (c *Client) callBegan(ctx context.Context, f followedCall) *followedCall {
	p := followedCalls.Get().(*followedCall)
	*p = f
	p.ctx, p.began = ctx, mono.Now()
	c.observeBegin(p)
	return p
}

func (c *Client) observeBegin(f *followedCall) {
	defer c.recoverObserver(f)
	info := f.info(c)
	if trace := c.o.observers.trace; trace != nil {
		f.by.found, _ = TraceFrom(f.ctx)
		f.by.trace, f.by.parent = trace(f.ctx, info)
		info.Trace, info.Parent = f.by.trace, f.by.parent
	}
	f.ctx = c.o.observers.callBegan(f.ctx, &info)
}

// callEnded tells the observers that a call has ended. It is the last use of f.
func (c *Client) callEnded(f *followedCall, err error) {
	c.observeEnd(f, err)
	*f = followedCall{}
	followedCalls.Put(f)
}

func (c *Client) observeEnd(f *followedCall, err error) {
	defer c.recoverObserver(f)
	info := f.info(c)
	info.Duration, info.Err = mono.Since(f.began), err
	info.Address, info.Attempt, info.Attempts = f.by.address, f.by.attempt, f.by.failed
	info.Trace, info.Parent = f.by.trace, f.by.parent
	info.Pick = Pick{Reason: f.by.reason, Balancer: c.balancer, Route: f.by.route}
	if e, ok := err.(*Error); ok {
		info.Address, info.Attempt, info.Attempts = e.Address, e.Attempt, e.Attempts
	}
	c.o.observers.callEnded(f.ctx, &info)
}

func (f *followedCall) info(c *Client) CallInfo {
	return CallInfo{Method: f.method, Target: c.observed, Stream: f.stream, Oneway: f.oneway, Forward: f.forward}
}

// recoverObserver is deferred around observers of whole calls, which must not change their result.
func (c *Client) recoverObserver(f *followedCall) {
	if p := recover(); p != nil {
		c.o.log.Error("an observer of a call panicked", "method", f.method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// beginFollowed begins a call of which observers learn, and returns its context.
//
//go:noinline
func (c *Client) beginFollowed(ctx context.Context, x *callState, name string) context.Context {
	x.followed = c.callBegan(ctx, followedCall{method: name})
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

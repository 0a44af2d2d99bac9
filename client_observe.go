package anser

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// followedCall is a call, with all its attempts, of which observers learn. It is pooled.
type followedCall struct {
	ctx    context.Context // with which the call continues
	began  mono.Time
	chosen tracedCall // if it was not measured before
	by     answer
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

var followedCalls = sync.Pool{New: func() any { return new(followedCall) }}

// callBegan tells the observers that a call begins.
func (c *Client) callBegan(ctx context.Context, method string, kind callKind) *followedCall {
	f := followedCalls.Get().(*followedCall)
	f.ctx, f.began = ctx, mono.Now()
	info := &f.by.info
	info.Method, info.Target, info.began = method, c.observed, f.began
	info.Stream, info.Oneway, info.Forward = kind.stream, kind.oneway, kind.forward
	if c.o.observers.trace != nil {
		c.chooseTrace(ctx, CallKind{Method: method, Target: c.observed, Stream: kind.stream, Oneway: kind.oneway}, &f.chosen)
		f.by.take(&f.chosen)
	}
	c.tellBegan(f)
	return f
}

// take makes the trace context that was chosen that of the record.
func (by *answer) take(t *tracedCall) {
	by.info.Trace, by.info.Parent, by.found = t.choice.Own, t.choice.Parent, t.found
}

// callEnded tells the observers that a call has ended. It is the last use of f.
func (c *Client) callEnded(f *followedCall, err error) {
	c.observeEnd(f, err)
	f.release()
}

func (f *followedCall) release() {
	*f = followedCall{}
	followedCalls.Put(f)
}

func (c *Client) observeEnd(f *followedCall, err error) {
	defer c.recoverObserver(f.by.info.Method)
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
func (c *Client) recoverObserver(method string) {
	c.observerPanicked(recover(), method)
}

// observerPanicked reports what recover has returned, unless it is nil.
func (c *Client) observerPanicked(p any, method string) {
	if p != nil {
		c.o.log.Error("an observer of a call panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

// beginFollowed begins a call that observers follow, and returns its context.
//
//go:noinline
func (c *Client) beginFollowed(ctx context.Context, x *callState, name string) context.Context {
	x.observe = observed
	x.followed = c.callBegan(ctx, name, callKind{})
	x.by = &x.followed.by
	return x.followed.ctx
}

// noticing says what observers learn of a call.
type noticing uint8

const (
	unobserved noticing = iota
	measured            // it is measured at its end, unless it is followed
	observed            // it is followed
)

// mayFollow reports whether observe has something to do for a call: it is followed, or the observer
// of traces may want it to be, or an interceptor learns of it.
func (x *callState) mayFollow(w *observers) bool {
	return x.by != nil || x.followed != nil || x.observe == measured && w.trace != nil
}

// observe prepares k for the observers, and returns the context with which the call goes on. If the
// call is not followed, and the observer of traces wants it to be, that begins here.
//
//go:noinline
func (c *Client) observe(ctx context.Context, x *callState, k *call, name string) context.Context {
	switch {
	case x.followed != nil:
		k.began = x.followed.began
	case x.observe == measured && c.o.observers.trace != nil:
		if !c.chooseTrace(ctx, CallKind{Method: name, Target: c.observed}, &k.chosen) {
			k.traced, k.sampled = &k.chosen, k.chosen.choice.Own.Flags&1 != 0
			break
		}
		f := c.lateRecord(k, name)
		f.ctx = ctx
		x.observe, x.followed, x.by = observed, f, &f.by
		c.tellBegan(f)
		ctx = f.ctx
	}
	if x.by != nil {
		k.traced = x.by
	}
	return ctx
}

// chooseTrace asks the observer of traces about a call, and reports whether the call must be
// followed.
func (c *Client) chooseTrace(ctx context.Context, kind CallKind, t *tracedCall) (follow bool) {
	defer c.recoverObserver(kind.Method)
	if *t = (tracedCall{}); ctx != context.Background() {
		t.found, _ = TraceFrom(ctx)
		t.choice.Parent = t.found
	}
	c.o.observers.trace(ctx, kind, &t.choice)
	return t.choice.Follow
}

func (c *Client) tellBegan(f *followedCall) {
	defer c.recoverObserver(f.by.info.Method)
	f.ctx = c.o.observers.callBegan(f.ctx, &f.by.info)
}

// followLate makes observers learn of a call that is not measured after all, since its first
// attempt was not the last.
//
//go:noinline
func (c *Client) followLate(x *callState) {
	x.observe, x.followed = observed, c.lateRecord(x.k, x.m.name)
	x.by = &x.followed.by
}

// lateRecord returns the record of a call that has not been followed so far.
func (c *Client) lateRecord(k *call, name string) *followedCall {
	f := followedCalls.Get().(*followedCall)
	f.began = k.opening()
	info := &f.by.info
	info.Method, info.Target, info.began = name, c.observed, f.began
	if c.o.observers.trace != nil {
		f.by.take(&k.chosen)
	}
	return f
}

// measure tells the observers of a call that succeeded at its first attempt.
//
//go:noinline
func (c *Client) measure(ctx context.Context, x *callState) {
	x.observe = unobserved // nothing is left to tell at the end
	returned := false
	defer func() {
		if !returned {
			c.observerPanicked(recover(), x.m.name)
		}
	}()
	took := mono.Since(x.k.opening())
	sampled := c.o.observers.trace != nil && x.k.sampled
	for i := range x.m.measures {
		m := &x.m.measures[i]
		if m.count(ctx, Measurement{Duration: took, Sampled: sampled}) && m.ended != nil {
			c.tellMeasured(ctx, x, m, took)
		}
	}
	returned = true
}

//go:noinline
func (c *Client) tellMeasured(ctx context.Context, x *callState, m *measure, took time.Duration) {
	f := c.lateRecord(x.k, x.m.name)
	noteAnswer(x.o, &f.by, x.k, x.e, 0)
	info := &f.by.info
	info.Measured, info.Duration = true, took
	info.Pick = Pick{Reason: f.by.reason, Balancer: c.balancer, Route: f.by.route}
	m.ended(ctx, info)
	f.release()
}

// noteAnswer records the attempt of a call that was answered, for interceptors and observers.
func noteAnswer(o *callOptions, by *answer, k *call, e *endpoint, attempt int) {
	if o.inv != nil {
		o.inv.answered(e.Instance().Address, attempt)
	}
	if by != nil {
		by.info.Address, by.info.Attempt = e.Instance().Address, attempt
	}
	notePick(o, by, k)
}

// notePick records how the instance of an attempt was chosen.
func notePick(o *callOptions, by *answer, k *call) {
	if o.inv != nil {
		k.notePick(&o.inv.picked)
	}
	if by != nil {
		k.notePick(&by.picked)
	}
}

func (k *call) notePick(p *picked) {
	if p.reason, p.route = k.pick.Reason, ""; k.route != nil {
		p.route = k.route.Name
	}
}

// context returns the context with which the call goes on.
func (x *callState) context(ctx context.Context) context.Context {
	if x.followed != nil && x.followed.ctx != nil {
		return x.followed.ctx
	}
	return ctx
}

// end ends the call with err, which it returns.
func (x *callState) end(ctx context.Context, c *Client, name string, err error) error {
	if x.observe != unobserved {
		c.endObserved(ctx, x, name, err)
	}
	return err
}

// endObserved tells the observers that a call has ended.
func (c *Client) endObserved(ctx context.Context, x *callState, name string, err error) {
	if x.observe == measured { // it failed before it had an attempt
		x.followed = c.callBegan(ctx, name, callKind{})
	}
	if f := x.followed; f != nil {
		if f.ctx == nil {
			f.ctx = ctx
		}
		c.callEnded(f, err)
	}
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
	info.Bytes = len(k.frame) - int(k.head) + len(k.lent)
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

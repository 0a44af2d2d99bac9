package anser

import "context"

// callKey is the key of a handler's context for its call.
type callKey struct{}

// servedCall is the call that a handler serves, with what the handler's own calls inherit from it.
type servedCall interface {
	inheritedMetadata() []byte // an encoded block, or nil
	inheritedTrace() *Trace    // nil: none
	level() Priority
	isRetry() bool
}

// traced is a call whose trace context observers have chosen.
type traced interface {
	// traceOf returns the trace context that the call sends with its context ctx.
	traceOf(ctx context.Context) (Trace, bool)
}

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

// tracedCall is the trace context that an observer chose for a call that is not followed.
type tracedCall struct {
	choice TraceChoice
	found  Trace
}

// traceOf implements traced. Nothing has changed the context since the choice.
func (t *tracedCall) traceOf(context.Context) (Trace, bool) {
	if isTrace(&t.choice.Own) {
		return t.choice.Own, true
	}
	return t.found, isTrace(&t.found)
}

// servedFrom returns the call whose handler ctx belongs to, or nil.
func servedFrom(ctx context.Context) servedCall {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(callKey{}).(servedCall)
	return c
}

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

// servedFrom returns the call whose handler ctx belongs to, or nil.
func servedFrom(ctx context.Context) servedCall {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(callKey{}).(servedCall)
	return c
}

package anser

import "context"

// callKey is the key under which a handler's context holds its call.
type callKey struct{}

// servedCall is the call that a handler serves, as far as the calls that it makes inherit from it.
type servedCall interface {
	inheritedMetadata() []byte // a block, or nil
	inheritedTrace() *Trace    // nil: none
	level() Priority
	isRetry() bool
}

// servedFrom returns the call whose handler ctx belongs to, or nil.
func servedFrom(ctx context.Context) servedCall {
	c, _ := ctx.Value(callKey{}).(servedCall)
	return c
}

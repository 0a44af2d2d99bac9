package otel

import (
	"context"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/anser-rpc/anser"
)

// The keys of metadata, and headers of the protocols over HTTP, that go along with a trace, as in
// W3C Trace Context and W3C Baggage.
const (
	stateKey   = "tracestate"
	baggageKey = "baggage"
)

// carriesMore reports whether a call carries anything else along with its trace.
func carriesMore(ctx context.Context, server bool) bool {
	switch {
	case server:
		return anser.MetadataValue(ctx, baggageKey) != "" || anser.MetadataValue(ctx, stateKey) != ""
	case ctx == context.Background():
		return false
	}
	return baggage.FromContext(ctx).Len() > 0 || stateOf(ctx).Len() > 0
}

// receive puts into the context of a handler what the caller sent along with its trace. What cannot
// be parsed is left out.
func receive(ctx context.Context) context.Context {
	if text := anser.MetadataValue(ctx, baggageKey); text != "" {
		if b, err := baggage.Parse(text); err == nil {
			ctx = baggage.ContextWithBaggage(ctx, b)
		}
	}
	if text := anser.MetadataValue(ctx, stateKey); text != "" {
		if state, err := trace.ParseTraceState(text); err == nil {
			ctx = context.WithValue(ctx, stateContextKey{}, state)
		}
	}
	return ctx
}

// send lets a call carry what the context has besides the trace.
func send(ctx context.Context) context.Context {
	var more anser.Metadata
	if b := baggage.FromContext(ctx); b.Len() > 0 {
		more = anser.Metadata{baggageKey: b.String()}
	}
	if state := stateOf(ctx); state.Len() > 0 {
		if more == nil {
			more = make(anser.Metadata, 1)
		}
		more[stateKey] = state.String()
	}
	if more == nil {
		return ctx
	}
	return anser.WithMetadata(ctx, more)
}

// stateOf returns the state of the trace of a context: that of its span, or the one that arrived
// with a call that is not recorded.
func stateOf(ctx context.Context) trace.TraceState {
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		return s.TraceState()
	}
	state, _ := ctx.Value(stateContextKey{}).(trace.TraceState)
	return state
}

// stateContextKey is the key of a handler's context for the state that arrived.
type stateContextKey struct{}

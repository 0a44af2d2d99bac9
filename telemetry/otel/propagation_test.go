package otel_test

import (
	"context"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// Baggage and the state of a trace go along the chain of calls, recorded or not.
func TestPropagation(t *testing.T) {
	for _, flags := range []trace.TraceFlags{0, trace.FlagsSampled} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t, otel.Ratio(0))
			var text, state string
			var id [16]byte
			c := chain(t, m, func(ctx context.Context) error {
				text, state = baggage.FromContext(ctx).String(), trace.SpanContextFromContext(ctx).TraceState().String()
				t, _ := anser.TraceFrom(ctx)
				id = t.TraceID
				return nil
			})
			b, err := baggage.Parse("tenant=blue,user=a%20b")
			if err != nil {
				t.Fatal(err)
			}
			s, err := trace.ParseTraceState("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")
			if err != nil {
				t.Fatal(err)
			}
			ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: trace.TraceID{7}, SpanID: trace.SpanID{8}, TraceFlags: flags, TraceState: s,
			}))
			if err := do(baggage.ContextWithBaggage(ctx, b), c); err != nil {
				t.Fatal(err)
			}
			got, err := baggage.Parse(text)
			if err != nil || got.Member("tenant").Value() != "blue" || got.Member("user").Value() != "a b" {
				t.Errorf("flags %v: the baggage is %q: %v", flags, text, err)
			}
			if id != [16]byte{7} || flags == trace.FlagsSampled && state != s.String() {
				t.Errorf("flags %v: the trace is %x with the state %q, want %q", flags, id, state, s)
			}
			synctest.Wait()
			for _, span := range m.take() {
				if got := span.SpanContext().TraceState().String(); got != s.String() {
					t.Errorf("a span has the state %q, want %q", got, s)
				}
			}
		})
	}
}

// What strangers send is left out if it cannot be parsed, and disturbs no call.
func TestPropagationOfNonsense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		c := chain(t, m, func(ctx context.Context) error {
			if n := baggage.FromContext(ctx).Len(); n != 0 {
				t.Errorf("%d members of baggage", n)
			}
			return nil
		})
		for _, text := range []string{"=", ";;;", "a=\u00e9\t", "a=b=c,,=", "\""} {
			if err := do(anser.WithMetadata(t.Context(), anser.Metadata{"baggage": text, "tracestate": text}), c); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

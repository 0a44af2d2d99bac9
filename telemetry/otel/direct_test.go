package otel_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// One call after the other has spans that the SDK does not make. They have the resource and the
// scope of the provider.
func TestDirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		c := chain(t, m, func(context.Context) error { return nil })
		for n := range 3 {
			if err := do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			spans := m.take()
			expectChain(t, spans, 6)
			for _, s := range spans {
				if n > 0 && !otel.IsDirect(s) {
					t.Error("the SDK made a span")
				}
				if s.InstrumentationScope().Name != "github.com/anser-rpc/anser/telemetry/otel" || !s.Resource().Equal(resource.Default()) {
					t.Errorf("a span has the scope %v and the resource %v", s.InstrumentationScope(), s.Resource())
				}
			}
		}
	})
}

// The provider makes spans that it would not have, if it has no options of this package.
func TestDirectOfOtherProvider(t *testing.T) {
	for name, opt := range map[string]sdktrace.TracerProviderOption{"sampler": otel.Sampler(nil), "ids": otel.IDs()} {
		synctest.Test(t, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			p := sdktrace.NewTracerProvider(opt, sdktrace.WithSpanProcessor(spans))
			o, err := otel.New(otel.Traces(p), otel.Direct(spans))
			if err != nil {
				t.Fatal(err)
			}
			m := &memory{o, spans, p}
			c := chain(t, m, func(context.Context) error { return nil })
			for range 2 {
				do(t.Context(), c)
				synctest.Wait()
				for _, s := range m.take() {
					if otel.IsDirect(s) {
						t.Errorf("only the option of the %s: the SDK did not make a span", name)
					}
				}
			}
		})
	}
}

// The handler of a call without a trace context has that of its span, although the server has no
// memory for it.
func TestDirectOfPlainClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		network := new(ansertest.Network)
		var traced anser.Trace
		var own trace.SpanContext
		s := anser.NewServer(silent, m.Option())
		anser.Handle(s, "Echo.Say", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			traced, _ = anser.TraceFrom(ctx)
			own = trace.SpanContextFromContext(ctx)
			return in, nil
		})
		l := network.Listen("a:1")
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		for range 2 {
			if _, err := anser.Call[[]byte](t.Context(), c, "Echo.Say", new([]byte("x"))); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			spans := m.take()
			if len(spans) != 1 || !spans[0].SpanContext().Equal(own) || traced.SpanID != own.SpanID() || traced.TraceID != own.TraceID() {
				t.Errorf("the handler has the trace %v and the span %v; the spans are %v", traced, own, spans)
			}
		}
		s.Close()
		<-done
	})
}

// Two exporters of one side record each call once.
func TestDirectTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := []*memory{newMemory(t), newMemory(t)}
		network := new(ansertest.Network)
		s := anser.NewServer(silent, both[0].Option(), both[1].Option())
		anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
		l := network.Listen("a:1")
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		for n := range 3 { // the first spans are of the SDK
			if _, err := anser.Call[[]byte](t.Context(), c, "Echo.Say", new([]byte("x"))); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for i, m := range both {
				if spans := m.take(); len(spans) != 1 || otel.IsDirect(spans[0]) != (n > 0) || spans[0].Parent().IsValid() {
					t.Errorf("call %d, exporter %d: the spans are %v", n, i, spans)
				}
			}
		}
		s.Close()
		<-done
	})
}

// What a handler adds to the span of its call is in it, and what it adds after the call is not.
func TestAddedByHandler(t *testing.T) {
	for name, add := range map[string]func(s trace.Span){
		"an attribute": func(s trace.Span) { s.SetAttributes(attribute.Int("answer", 42)) },
		"an event":     func(s trace.Span) { s.AddEvent("answered") },
		"a link":       func(s trace.Span) { s.AddLink(trace.Link{SpanContext: s.SpanContext()}) },
		"an error":     func(s trace.Span) { s.RecordError(errors.New("no answer")) },
		"a status":     func(s trace.Span) { s.SetStatus(codes.Error, "no answer") },
		"a name":       func(s trace.Span) { s.SetName("Answer") },
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t)
			var adds bool
			var own trace.Span
			c := chain(t, m, func(ctx context.Context) error {
				own = trace.SpanFromContext(ctx)
				if !own.IsRecording() {
					t.Error("the span of the handler does not record")
				}
				if adds {
					add(own)
				}
				return nil
			})
			var plain string
			for _, adds = range []bool{false, false, true} {
				do(t.Context(), c)
				synctest.Wait()
				add(own)
				if own.IsRecording() {
					t.Error("the span records after the call")
				}
				spans := m.take()
				expectChain(t, spans, 6)
				var last string
				for _, s := range spans {
					if s.SpanContext().Equal(own.SpanContext()) {
						last = fmt.Sprint(s.Name(), keysOf(s.Attributes()), len(s.Events()), len(s.Links()), s.Status())
					}
				}
				if plain != "" && adds == (last == plain) {
					t.Errorf("%s, added %t: the span is %s", name, adds, last)
				}
				plain = last
			}
		})
	}
}

func keysOf(attrs []attribute.KeyValue) string {
	var keys []string
	for _, a := range attrs {
		keys = append(keys, string(a.Key))
	}
	return strings.Join(keys, " ")
}

// Goroutines of a handler may use its span while the call ends.
func TestSpanWhileCallEnds(t *testing.T) {
	m := newMemory(t)
	var wg sync.WaitGroup
	c := chain(t, m, func(ctx context.Context) error {
		span := trace.SpanFromContext(ctx)
		ids := span.SpanContext()
		for i := range 3 {
			wg.Go(func() {
				if i == 0 {
					span.AddEvent("late")
				}
				span.IsRecording()
				if !span.SpanContext().Equal(ids) {
					t.Error("the ids of a span change")
				}
				_, child := m.provider.Tracer("test").Start(ctx, "query")
				child.End()
			})
		}
		return nil
	})
	const calls = 50
	for range calls {
		if err := do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	seen := make(map[trace.SpanID]bool)
	for _, s := range m.take() {
		if seen[s.SpanContext().SpanID()] {
			t.Error("a span is recorded twice")
		}
		seen[s.SpanContext().SpanID()] = true
	}
}

// A span knows how many children it has.
func TestChildrenOfHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		c := chain(t, m, func(ctx context.Context) error {
			for range 3 {
				_, span := m.provider.Tracer("test").Start(ctx, "query")
				span.End()
			}
			return nil
		})
		do(t.Context(), c)
		synctest.Wait()
		m.take()
		do(t.Context(), c)
		synctest.Wait()
		for _, s := range m.take() {
			if n := s.ChildSpanCount(); n != 0 && n != 3 || s.Name() == "query" && n != 0 {
				t.Errorf("%s has %d children", s.Name(), n)
			} else if n == 3 {
				return
			}
		}
		t.Error("no span has children")
	})
}

// A recorded call costs a few allocations and a kilobyte, at both sides together. Two of the
// allocations are addresses of the connection, which other networks have in memory.
func TestSampledAllocations(t *testing.T) {
	if raced {
		t.Skip("the race detector makes pools drop what they hold")
	}
	synctest.Test(t, func(t *testing.T) {
		allocs, bytes := costOfCall(t, 1)
		without, bytesWithout := costOfCall(t, 0)
		allocs, bytes = allocs-without, bytes-bytesWithout
		t.Logf("a recorded call has %.2f allocations of %.0f bytes more than another", allocs, bytes)
		if allocs > 6.5 || bytes > 1150 {
			t.Errorf("a recorded call has %.2f allocations of %.0f bytes more than another", allocs, bytes)
		}
	})
}

// costOfCall returns the allocations and bytes of a call if the share of the calls is recorded.
func costOfCall(t *testing.T, share float64) (allocs, bytes float64) {
	p := sdktrace.NewTracerProvider(otel.Sampler(nil), otel.IDs())
	o, err := otel.New(otel.Traces(p), otel.Direct(ended{}), otel.Ratio(share))
	if err != nil {
		t.Fatal(err)
	}
	network := new(ansertest.Network)
	s := anser.NewServer(silent, o.Option())
	takes := 200 * time.Microsecond
	anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) {
		takes -= 10 // the meter keeps each call that is the slowest
		time.Sleep(takes)
		return in, nil
	})
	l := network.Listen("a:1")
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c := dial(t, "a:1", anser.Dialer(network.Dial), o.Option())
	in := []byte("x")
	call := func() {
		if _, err := anser.Call[[]byte](context.Background(), c, "Echo.Say", &in); err != nil {
			t.Fatal(err)
		}
	}
	const calls = 4000
	for range 2 * calls { // more than a second, from which on the meter keeps few of many calls
		call()
	}
	allocs, bytes = math.Inf(1), math.Inf(1)
	for range 3 { // a garbage collection empties the pools
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			call()
		}
		runtime.ReadMemStats(&after)
		allocs = min(allocs, float64(after.Mallocs-before.Mallocs)/calls)
		bytes = min(bytes, float64(after.TotalAlloc-before.TotalAlloc)/calls)
	}
	s.Close()
	<-done
	return allocs, bytes
}

// ended is a processor that drops all spans.
type ended struct{}

func (ended) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (ended) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (ended) Shutdown(context.Context) error                  { return nil }
func (ended) ForceFlush(context.Context) error                { return nil }

package otel_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// memory is an exporter whose spans stay in memory, for tests that count.
type memory struct {
	*otel.Exporter
	spans    *tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
}

func newMemory(t *testing.T, opts ...otel.Option) *memory {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	p := sdktrace.NewTracerProvider(otel.Sampler(nil), otel.IDs(), sdktrace.WithSpanProcessor(spans))
	o, err := otel.New(append([]otel.Option{otel.Traces(p), otel.Direct(spans)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return &memory{o, spans, p}
}

// take returns the spans that have ended.
func (m *memory) take() []sdktrace.ReadOnlySpan {
	list := m.spans.Ended()
	m.spans.Reset()
	return list
}

// chain are three servers, of which the first two call the next one, and a client of the first.
func chain(t *testing.T, m *memory, handle func(ctx context.Context) error) *anser.Client {
	t.Helper()
	network := new(ansertest.Network)
	var next *anser.Client
	for _, name := range []string{"c:1", "b:1", "a:1"} {
		to := next
		s := anser.NewServer(silent, m.Option())
		anser.Handle(s, "Chain.Do", func(ctx context.Context, in *[]byte) (*[]byte, error) {
			if to == nil {
				return in, handle(ctx)
			}
			return anser.Call[[]byte](ctx, to, "Chain.Do", in)
		})
		l := network.Listen(name)
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		t.Cleanup(func() {
			s.Close()
			<-done
		})
		next = dial(t, name, anser.Dialer(network.Dial), m.Option())
	}
	return next
}

func do(ctx context.Context, c *anser.Client) error {
	_, err := anser.Call[[]byte](ctx, c, "Chain.Do", new([]byte("x")))
	return err
}

// expectChain wants the spans of a call through the chain, each the child of the one before.
func expectChain(t *testing.T, spans []sdktrace.ReadOnlySpan, n int) {
	t.Helper()
	if len(spans) != n {
		t.Fatalf("%d spans, want %d", len(spans), n)
	}
	byParent := make(map[trace.SpanID]sdktrace.ReadOnlySpan)
	for _, s := range spans {
		byParent[s.Parent().SpanID()] = s
	}
	parent, kind := trace.SpanID{}, trace.SpanKindClient
	for range spans {
		s := byParent[parent]
		if s == nil {
			t.Fatal("a span is missing between others")
		}
		if s.SpanContext().TraceID() != spans[0].SpanContext().TraceID() || s.SpanKind() != kind {
			t.Errorf("the span %v is in another trace, or of another kind", s)
		}
		parent = s.SpanContext().SpanID()
		kind = map[trace.SpanKind]trace.SpanKind{trace.SpanKindClient: trace.SpanKindServer, trace.SpanKindServer: trace.SpanKindClient}[s.SpanKind()]
	}
}

// A trace is recorded at all of its calls or at none.
func TestRatio(t *testing.T) {
	for _, share := range []float64{0, 0.5, 1} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t, otel.Ratio(share))
			c := chain(t, m, func(ctx context.Context) error { return nil })
			const calls = 400
			count := 0
			for range calls {
				if err := do(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if spans := m.take(); len(spans) > 0 {
					expectChain(t, spans, 6)
					count++
				}
			}
			// Half of 400 is further than 100 from the mean once in 10^22 times.
			if float64(count) < calls*share-100 || float64(count) > calls*share+100 || share == 0 && count > 0 || share == 1 && count != calls {
				t.Errorf("%d of %d traces with the ratio %v", count, calls, share)
			}
		})
	}
}

// A call follows its parent: a span of the SDK, or a trace context of Anser.
func TestParent(t *testing.T) {
	for _, way := range ways {
		synctest.Test(t, func(t *testing.T) { testParent(t, newMemory(t, append(way, otel.Ratio(0))...)) })
	}
}

func testParent(t *testing.T, m *memory) {
	c := chain(t, m, func(ctx context.Context) error { return nil })
	ctx, span := m.provider.Tracer("test").Start(t.Context(), "job")
	do(ctx, c)
	synctest.Wait()
	spans := m.take()
	if len(spans) != 6 {
		t.Fatalf("%d spans below a span", len(spans))
	}
	for _, s := range spans {
		if s.SpanContext().TraceID() != span.SpanContext().TraceID() {
			t.Error("a span is in another trace")
		}
	}
	span.End()
	m.take()
	for flags, want := range map[byte]int{0: 0, 1: 6} {
		do(anser.WithTrace(t.Context(), anser.Trace{TraceID: [16]byte{1}, SpanID: [8]byte{2}, Flags: flags}), c)
		synctest.Wait()
		if got := m.take(); len(got) != want {
			t.Errorf("%d spans with the flags %d, want %d", len(got), flags, want)
		}
	}
}

// What else a handler records follows its call.
func TestSpansOfHandler(t *testing.T) {
	for share, want := range map[float64]int{0: 0, 1: 7} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t, otel.Ratio(share))
			c := chain(t, m, func(ctx context.Context) error {
				_, span := m.provider.Tracer("test").Start(ctx, "query", trace.WithSpanKind(trace.SpanKindClient))
				span.End()
				return nil
			})
			do(t.Context(), c)
			synctest.Wait()
			expectChain(t, m.take(), want)
			// Outside of a call the provider does what it is told.
			_, span := m.provider.Tracer("test").Start(t.Context(), "job")
			span.End()
			if n := len(m.take()); n != 1 {
				t.Errorf("%d spans of a job, want 1", n)
			}
		})
	}
}

// A slow or failed call is recorded at all of its calls, each below its caller.
func TestTail(t *testing.T) {
	for _, way := range ways {
		synctest.Test(t, func(t *testing.T) {
			testTail(t, newMemory(t, append(way, otel.Ratio(0), otel.Tail(100*time.Millisecond))...))
		})
	}
}

func testTail(t *testing.T, m *memory) {
	var takes atomic.Int64
	var fails atomic.Bool
	c := chain(t, m, func(ctx context.Context) error {
		time.Sleep(time.Duration(takes.Load()))
		if fails.Load() {
			return anser.Errorf(anser.FailedPrecondition, "no")
		}
		return nil
	})
	do(t.Context(), c)
	synctest.Wait()
	if n := len(m.take()); n != 0 {
		t.Errorf("%d spans of a call that was neither slow nor failed", n)
	}
	takes.Store(int64(time.Second))
	do(t.Context(), c)
	synctest.Wait()
	spans := m.take()
	expectChain(t, spans, 6)
	for _, s := range spans {
		if d := s.EndTime().Sub(s.StartTime()); d != time.Second {
			t.Errorf("a span took %v", d)
		}
	}
	takes.Store(0)
	fails.Store(true)
	do(t.Context(), c)
	synctest.Wait()
	expectChain(t, m.take(), 6)
	for _, method := range m.Meter().Snapshot().Methods {
		for _, s := range method.Codes {
			if s.Code == anser.FailedPrecondition && s.Exemplar == nil {
				t.Errorf("no exemplar of %s", method.Name)
			}
		}
	}
}

// A server records calls that it refuses, below their caller if it knows it.
func TestTailOfRefusals(t *testing.T) {
	e := newExport(t, otel.Ratio(0), otel.Tail(0))
	x := newSides(t, e)
	anser.Call[[]byte](t.Context(), x.c, "Shop.Invented", new([]byte))
	spans := eventually(t, e, 2)
	for _, s := range spans {
		want := "Shop/Invented"
		if s.Kind == traces.Span_SPAN_KIND_SERVER {
			want = "_OTHER"
		}
		if s.Name != want {
			t.Errorf("the %v is named %q, want %q", s.Kind, s.Name, want)
		}
	}
}

// A storm of failures makes a bounded number of spans.
func TestTailRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, otel.Ratio(0), otel.Tail(0), otel.TailRate(20))
		c := chain(t, m, func(context.Context) error { return io.ErrUnexpectedEOF })
		for range 50 {
			do(t.Context(), c)
		}
		synctest.Wait()
		if n := len(m.take()); n != 20 || m.TailDropped() != 280 {
			t.Errorf("%d spans, %d dropped", n, m.TailDropped())
		}
		time.Sleep(2 * time.Second)
		do(t.Context(), c)
		synctest.Wait()
		expectChain(t, m.take(), 6)
	})
}

// A call that is not recorded costs no memory, at either side.
func TestAllocations(t *testing.T) {
	network := new(ansertest.Network)
	per := func(ctx context.Context, opts ...anser.Option) float64 {
		server, client := []anser.ServerOption{silent}, []anser.DialOption{silent, anser.Dialer(network.Dial), anser.Conns(1)}
		for _, o := range opts {
			server, client = append(server, o), append(client, o)
		}
		s := anser.NewServer(server...)
		anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
		l := network.Listen("a:1")
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		c, err := anser.Dial("a:1", client...)
		if err != nil {
			t.Fatal(err)
		}
		in := []byte("x")
		call := func() {
			if _, err := anser.Call[[]byte](ctx, c, "Echo.Say", &in); err != nil {
				t.Fatal(err)
			}
		}
		for range 200 {
			call()
		}
		n := testing.AllocsPerRun(2000, call)
		c.Close()
		s.Close()
		<-done
		return n
	}
	allowance := 0.0
	if raced {
		allowance = 2
	}
	o := newMemory(t, otel.Ratio(0), otel.Tail(time.Hour))
	for name, ctx := range map[string]context.Context{
		"no trace": context.Background(), "a trace that is not recorded": anser.WithTrace(context.Background(), anser.Trace{TraceID: [16]byte{1}, SpanID: [8]byte{1}}),
	} {
		if with, without := per(ctx, o.Option()), per(ctx); with > without+allowance {
			t.Errorf("%s: %v allocations a call with the option, %v without", name, with, without)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, opt := range []otel.Option{nil, otel.Traces(nil), otel.Ratio(-1), otel.Ratio(2), otel.Tail(-1), otel.TailRate(0), otel.Meter(nil), otel.Direct(ended{}, nil)} {
		if o, err := otel.New(opt); err == nil || o != nil {
			t.Error("no error")
		}
	}
}

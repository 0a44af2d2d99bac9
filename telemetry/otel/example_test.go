package otel_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry/otel"
)

func Example() {
	exporter := tracetest.NewInMemoryExporter() // or that of package otlptracegrpc, for a collector
	provider := sdktrace.NewTracerProvider(otel.Sampler(nil), otel.IDs(), sdktrace.WithSyncer(exporter))
	o, err := otel.New(otel.Traces(provider), otel.Ratio(0), otel.Tail(time.Second))
	if err != nil {
		log.Fatal(err)
	}

	s := anser.NewServer(o.Option(), silent)
	anser.Handle(s, "Arith.Div", func(_ context.Context, in *[2]int) (*int, error) {
		if in[1] == 0 {
			return nil, anser.Errorf(anser.InvalidArgument, "division by 0")
		}
		return new(in[0] / in[1]), nil
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	c, err := anser.Dial(l.Addr().String(), o.Option())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	// No trace is chosen at random here, but calls that fail are recorded.
	for divisor := range 2 {
		anser.Call[int](context.Background(), c, "Arith.Div", &[2]int{6, divisor})
	}
	spans := exporter.GetSpans()
	slices.SortFunc(spans, func(a, b tracetest.SpanStub) int { return int(a.SpanKind - b.SpanKind) })
	for _, span := range spans {
		fmt.Println(span.SpanKind, span.Name, span.Status.Code)
	}
	fmt.Println("one trace:", spans[0].SpanContext.TraceID() == spans[1].SpanContext.TraceID())
	// Output:
	// server Arith/Div Unset
	// client Arith/Div Error
	// one trace: true
}

package demo

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/otel"
)

const (
	// tracedShare is the share of the calls whose spans are exported, besides failed and slow ones.
	tracedShare = 0.01
	// exportBound is how long a process waits at its end for the collector.
	exportBound = 2 * time.Second
)

// collected reports whether the environment names a collector, in the variables of OpenTelemetry.
func collected() bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// newTraces returns what gives the calls of a process their ids, and a meter's measurements. The
// spans go to the collector, if there is one; failed is called when it begins not to take them.
func newTraces(service, id string, meter *telemetry.Meter, failed func(error)) (*otel.Exporter, *sdktrace.TracerProvider, error) {
	opts := []sdktrace.TracerProviderOption{
		otel.Sampler(nil), otel.IDs(),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service), attribute.String("service.instance.id", id))),
	}
	if collected() {
		exporter, err := otlptracehttp.New(context.Background())
		if err != nil {
			return nil, nil, err
		}
		opts = append(opts, sdktrace.WithBatcher(&reporting{SpanExporter: exporter, failed: failed}))
	}
	provider := sdktrace.NewTracerProvider(opts...)
	calls, err := otel.New(otel.Traces(provider), otel.Meter(meter), otel.Ratio(tracedShare), otel.Tail(slowCall))
	return calls, provider, err
}

// reporting reports when its exporter begins to fail. The SDK would log each failure, into the
// table of the demo.
type reporting struct {
	sdktrace.SpanExporter
	failed  func(error)
	failing atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter.
func (r *reporting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		r.failing.Store(false)
	} else if !r.failing.Swap(true) {
		r.failed(err)
	}
	return nil
}

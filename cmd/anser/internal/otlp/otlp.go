// Package otlp exports the calls of a process of this command to a collector of OpenTelemetry.
package otlp

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// endBound is how long [Export.Close] waits for the collector.
const endBound = 2 * time.Second

// Named reports whether the environment names a collector, in the variables of OpenTelemetry.
func Named() bool { return tracesNamed() || metricsNamed() }

func tracesNamed() bool  { return named("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") }
func metricsNamed() bool { return named("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") }

func named(own string) bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv(own) != ""
}

// Options describe the process.
type Options struct {
	Service, ID string // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before them
	Meter       *telemetry.Meter
	Share       float64       // of the calls whose spans are exported, besides failed and slow ones
	Slow        time.Duration // from which on a call is slow
	Metrics     bool          // metrics are exported too
	Failed      func(error)   // is told when the collector begins not to take spans or metrics
}

// Export gives the calls of a process the ids of traces, and exports them.
type Export struct {
	*otel.Exporter
	spans   *sdktrace.TracerProvider
	metrics *metric.MeterProvider // or nil
}

// New returns an export to the collector that the environment names. Without one the calls have ids
// all the same. Close ends it.
func New(o Options) (*Export, error) {
	if p := os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: this command speaks http/protobuf, usually at port 4318", p)
	}
	about, err := resource.Merge(resource.NewSchemaless(attribute.String("service.name", o.Service), attribute.String("service.instance.id", o.ID)), resource.Environment())
	if err != nil {
		return nil, err
	}
	opts := []sdktrace.TracerProviderOption{otel.Sampler(nil), otel.IDs(), sdktrace.WithResource(about)}
	var processors []sdktrace.SpanProcessor
	if tracesNamed() {
		exporter, err := otlptracehttp.New(context.Background())
		if err != nil {
			return nil, err
		}
		processors = append(processors, sdktrace.NewBatchSpanProcessor(&spanReporter{exporter, reporter{failed: o.Failed}}))
		opts = append(opts, sdktrace.WithSpanProcessor(processors[0]))
	}
	x := &Export{spans: sdktrace.NewTracerProvider(opts...)}
	if x.Exporter, err = otel.New(otel.Traces(x.spans), otel.Direct(processors...), otel.Meter(o.Meter), otel.Ratio(o.Share), otel.Tail(o.Slow)); err != nil {
		return nil, err
	}
	if !o.Metrics || !metricsNamed() {
		return x, nil
	}
	exporter, err := otlpmetrichttp.New(context.Background())
	if err != nil {
		x.Close()
		return nil, err
	}
	x.metrics = metric.NewMeterProvider(metric.WithResource(about), metric.WithReader(
		metric.NewPeriodicReader(&metricReporter{exporter, reporter{failed: o.Failed}}, metric.WithProducer(x.Producer()))))
	return x, nil
}

// Close exports the rest. What a collector does not take within two seconds is lost.
func (x *Export) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	if x.metrics != nil {
		x.metrics.Shutdown(ctx)
	}
	x.spans.Shutdown(ctx)
}

// reporter reports when an export begins to fail. The SDK would write each failure to the standard
// error.
type reporter struct {
	failed  func(error)
	failing atomic.Bool
}

func (r *reporter) report(err error) error {
	if err == nil {
		r.failing.Store(false)
	} else if !r.failing.Swap(true) {
		r.failed(err)
	}
	return nil
}

type spanReporter struct {
	sdktrace.SpanExporter
	reporter
}

// ExportSpans implements sdktrace.SpanExporter.
func (r *spanReporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return r.report(r.SpanExporter.ExportSpans(ctx, spans))
}

type metricReporter struct {
	metric.Exporter
	reporter
}

// Export implements metric.Exporter.
func (r *metricReporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	return r.report(r.Exporter.Export(ctx, m))
}

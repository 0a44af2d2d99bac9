package say

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/stats"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// What a process observes of its calls.
const (
	ObserveMetrics = "metrics" // a meter
	ObserveAll     = "all"     // a meter, traces of 1 % and of failed and slow calls, and an admin page that is looked at
)

// ObserveVariable is the variable of the environment that says it.
const ObserveVariable = "REACH_OBSERVE"

const (
	tracedShare = 0.01
	tracedSlow  = 100 * time.Millisecond
)

// observing returns the option of a server or a client for what is observed. end must be called
// when the calls are over.
func observing(what string) (option anser.Option, end func(), err error) {
	switch what {
	case "":
		return anser.Observe(), func() {}, nil
	case ObserveMetrics:
		return telemetry.New().Option(), func() {}, nil
	case ObserveAll:
		return observingAll()
	}
	return nil, nil, fmt.Errorf("cannot observe %q: want %s or %s", what, ObserveMetrics, ObserveAll)
}

func observingAll() (option anser.Option, end func(), err error) {
	spans := sdktrace.NewBatchSpanProcessor(nowhere{})
	traces := sdktrace.NewTracerProvider(otel.Sampler(nil), otel.IDs(), sdktrace.WithSpanProcessor(spans))
	meter := telemetry.New()
	o, err := otel.New(otel.Traces(traces), otel.Direct(spans), otel.Meter(meter), otel.Ratio(tracedShare), otel.Tail(tracedSlow))
	if err != nil {
		return nil, nil, err
	}
	metrics := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(unread{}, metric.WithInterval(10*time.Second), metric.WithProducer(o.Producer()))))
	page, err := admin.New(meter, admin.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, nil, err
	}
	l, err := page.Listen("127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() { page.Serve(l) })
	ctx, stop := context.WithCancel(context.Background())
	wg.Go(func() { look(ctx, "http://"+l.Addr().String()+"/") })
	return o.Option(), func() {
		stop()
		page.Close()
		wg.Wait()
		metrics.Shutdown(context.Background())
		traces.Shutdown(context.Background())
	}, nil
}

// look asks for a page every two seconds, as a browser does that shows it.
func look(ctx context.Context, url string) {
	for ctx.Err() == nil {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return
		}
		q.Header.Set("Accept", "text/html")
		if answer, err := http.DefaultClient.Do(q); err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// nowhere is an exporter of spans that reads and drops them.
type nowhere struct{}

func (nowhere) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		s.Attributes() // some spans make them only now
	}
	return nil
}

func (nowhere) Shutdown(context.Context) error { return nil }

// grpcObserving returns the handler of otelgrpc that observes the same of a server or a client of
// grpc-go, or nil.
func grpcObserving(what string, of func(...otelgrpc.Option) stats.Handler) (h stats.Handler, end func()) {
	if what == "" {
		return nil, func() {}
	}
	traces := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(tracedShare))), sdktrace.WithBatcher(nowhere{}))
	metrics := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(unread{}, metric.WithInterval(10*time.Second))))
	return of(otelgrpc.WithTracerProvider(traces), otelgrpc.WithMeterProvider(metrics)), func() {
		metrics.Shutdown(context.Background())
		traces.Shutdown(context.Background())
	}
}

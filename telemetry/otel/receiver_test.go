package otel_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	logcollector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metriccollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry/otel"
)

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// receiver is a collector that keeps what arrives over OTLP.
type receiver struct {
	address string

	mu      sync.Mutex // guards the fields below
	spans   []*traces.Span
	logs    []*logs.LogRecord
	metrics []*metrics.Metric // of the latest request
	wrong   []string
}

func newReceiver(t *testing.T) *receiver {
	r := new(receiver)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, q *http.Request) {
		in := new(tracecollector.ExportTraceServiceRequest)
		r.take(w, q, in, new(tracecollector.ExportTraceServiceResponse), func() {
			for _, resource := range in.ResourceSpans {
				for _, scope := range resource.ScopeSpans {
					r.spans = append(r.spans, scope.Spans...)
				}
			}
		})
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, q *http.Request) {
		in := new(metriccollector.ExportMetricsServiceRequest)
		r.take(w, q, in, new(metriccollector.ExportMetricsServiceResponse), func() {
			r.metrics = nil
			for _, resource := range in.ResourceMetrics {
				for _, scope := range resource.ScopeMetrics {
					r.metrics = append(r.metrics, scope.Metrics...)
				}
			}
		})
	})
	mux.HandleFunc("POST /v1/logs", func(w http.ResponseWriter, q *http.Request) {
		in := new(logcollector.ExportLogsServiceRequest)
		r.take(w, q, in, new(logcollector.ExportLogsServiceResponse), func() {
			for _, resource := range in.ResourceLogs {
				for _, scope := range resource.ScopeLogs {
					r.logs = append(r.logs, scope.LogRecords...)
				}
			}
		})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	r.address = s.Listener.Addr().String()
	return r
}

func (r *receiver) take(w http.ResponseWriter, q *http.Request, in, out proto.Message, keep func()) {
	body, err := io.ReadAll(q.Body)
	if err == nil {
		err = proto.Unmarshal(body, in)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.wrong = append(r.wrong, err.Error())
	}
	keep()
	answer, _ := proto.Marshal(out)
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(answer)
}

// ways are options with which the exporter makes spans itself, or has the SDK make them. The tests
// whose exporters have neither use the first.
var ways = map[string][]otel.Option{"direct": nil, "SDK": {otel.Direct()}}

// export is an exporter with a provider that sends to the receiver.
type export struct {
	*otel.Exporter
	r      *receiver
	traces *sdktrace.TracerProvider
}

func newExport(t *testing.T, opts ...otel.Option) *export {
	t.Helper()
	r := newReceiver(t)
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpoint(r.address), otlptracehttp.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	spans := sdktrace.NewBatchSpanProcessor(exporter)
	p := sdktrace.NewTracerProvider(otel.Sampler(nil), otel.IDs(), sdktrace.WithSpanProcessor(spans))
	t.Cleanup(func() { p.Shutdown(context.Background()) })
	o, err := otel.New(append([]otel.Option{otel.Traces(p), otel.Direct(spans)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return &export{o, r, p}
}

// take returns the spans that have arrived once all that have ended are sent.
func (e *export) take(t *testing.T) []*traces.Span {
	t.Helper()
	if err := e.traces.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.r.mu.Lock()
	defer e.r.mu.Unlock()
	list := e.r.spans
	e.r.spans = nil
	if len(e.r.wrong) > 0 {
		t.Error(e.r.wrong)
	}
	return list
}

// collect returns the metrics that arrive when a reader collects them.
func (e *export) collect(t *testing.T, opts ...otel.ProducerOption) map[string]*metrics.Metric {
	t.Helper()
	exporter, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpoint(e.r.address), otlpmetrichttp.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	p := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(exporter, metric.WithProducer(e.Producer(opts...)))))
	if err := p.Shutdown(t.Context()); err != nil { // it collects a last time
		t.Fatal(err)
	}
	e.r.mu.Lock()
	defer e.r.mu.Unlock()
	out := make(map[string]*metrics.Metric)
	for _, m := range e.r.metrics {
		out[m.Name] = m
	}
	return out
}

// textOf returns attributes in one line. Ports and times differ between runs.
func textOf(attrs []*common.KeyValue) string {
	var list []string
	for _, a := range attrs {
		value := ""
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			value = v.StringValue
		case *common.AnyValue_IntValue:
			value = fmt.Sprint(v.IntValue)
		case *common.AnyValue_BoolValue:
			value = fmt.Sprint(v.BoolValue)
		case *common.AnyValue_DoubleValue:
			value = "T"
			if v.DoubleValue < 0 {
				value = fmt.Sprint("wrong: ", v.DoubleValue)
			}
		}
		if strings.HasSuffix(a.Key, ".port") && value > "0" {
			value = "P"
		}
		list = append(list, a.Key+"="+value)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func idOf(id []byte) string { return hex.EncodeToString(id) }

// sides are a server with methods of several kinds, and a client.
type sides struct {
	s       *anser.Server
	c       *anser.Client
	release chan<- struct{} // ends a call that is late
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func serve(t *testing.T, s *anser.Server) string {
	t.Helper()
	l := listen(t)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return l.Addr().String()
}

func dial(t *testing.T, target string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial(target, append([]anser.DialOption{silent, anser.Conns(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func newSides(t *testing.T, e *export, opts ...anser.DialOption) *sides {
	t.Helper()
	s, release := anser.NewServer(silent, e.Option()), make(chan struct{}, 1)
	anser.Handle(s, "Shop.Buy", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		switch string(*in) {
		case "missing":
			return nil, anser.Errorf(anser.NotFound, "no such thing")
		case "broken":
			return nil, anser.Errorf(anser.Internal, "secret")
		case "twice":
			if anser.AttemptFrom(ctx) == 0 {
				return nil, anser.Aborted
			}
		case "late":
			<-release
			<-ctx.Done() // its time began later than the client's
			return nil, ctx.Err()
		case "slow":
			time.Sleep(60 * time.Millisecond)
		}
		return in, nil
	})
	anser.HandleStream(s, "Shop.Watch", func(ctx context.Context, st *anser.Stream[[]byte, []byte]) error {
		for {
			in, err := st.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if err := st.Send(in); err != nil {
				return err
			}
		}
	})
	address := serve(t, s)
	return &sides{s, dial(t, address, append(opts, e.Option())...), release}
}

func (x *sides) buy(ctx context.Context, what string, opts ...anser.CallOption) error {
	in := []byte(what)
	_, err := anser.Call[[]byte](ctx, x.c, "Shop.Buy", &in, opts...)
	return err
}

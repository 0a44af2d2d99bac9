package otel_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	sdk "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	logcollector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metriccollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// badCollector counts the requests that arrive, and answers them in a way of its own.
type badCollector struct {
	handle         func(c *badCollector, w http.ResponseWriter, r *http.Request)
	arrived        chan struct{} // has a value once a request has arrived
	ended          chan struct{} // closed when requests that hang may end
	records, bytes atomic.Int64  // log records, and the most bytes of a request with metrics

	mu        sync.Mutex // guards the fields below
	now, most int        // requests at once
}

func (c *badCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.count(1)
	defer c.count(-1)
	body, _ := io.ReadAll(r.Body)
	if in := new(logcollector.ExportLogsServiceRequest); r.URL.Path == "/v1/logs" && proto.Unmarshal(body, in) == nil {
		for _, resource := range in.ResourceLogs {
			for _, scope := range resource.ScopeLogs {
				c.records.Add(int64(len(scope.LogRecords)))
			}
		}
	}
	if in := new(metriccollector.ExportMetricsServiceRequest); r.URL.Path == "/v1/metrics" && proto.Unmarshal(body, in) == nil {
		c.bytes.Store(max(c.bytes.Load(), int64(len(body))))
	}
	select {
	case c.arrived <- struct{}{}:
	default:
	}
	c.handle(c, w, r)
}

func (c *badCollector) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	c.most = max(c.most, c.now)
}

func answerOTLP(w http.ResponseWriter, m proto.Message) {
	w.Header().Set("Content-Type", "application/x-protobuf")
	b, _ := proto.Marshal(m)
	w.Write(b)
}

// badCollectors are collectors of several kinds; nil is one that is down.
var badCollectors = map[string]func(c *badCollector, w http.ResponseWriter, r *http.Request){
	"down":  nil,
	"hangs": func(c *badCollector, _ http.ResponseWriter, _ *http.Request) { <-c.ended },
	"error": func(_ *badCollector, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	},
	"busy for years": func(_ *badCollector, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "999999999")
		w.WriteHeader(http.StatusTooManyRequests)
	},
	"lying": func(_ *badCollector, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.Write([]byte("\xff\xff\xffnonsense"))
	},
	"takes a part": func(_ *badCollector, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/logs" {
			answerOTLP(w, &logcollector.ExportLogsServiceResponse{PartialSuccess: &logcollector.ExportLogsPartialSuccess{RejectedLogRecords: 1 << 40, ErrorMessage: "full"}})
			return
		}
		answerOTLP(w, &metriccollector.ExportMetricsServiceResponse{PartialSuccess: &metriccollector.ExportMetricsPartialSuccess{RejectedDataPoints: -1, ErrorMessage: "full"}})
	},
}

const (
	logQueue = 64
	logBatch = 16
)

// A collector of metrics and logs that is down, never answers or answers nonsense disturbs neither
// calls nor the end of the program. Nothing here measures time: calls that waited for a collector
// that hangs would not end, as it hangs until the exporters are shut down.
func TestBadCollectorsOfMetricsAndLogs(t *testing.T) {
	before := sdk.GetErrorHandler()
	sdk.SetErrorHandler(sdk.ErrorHandlerFunc(func(error) {}))
	t.Cleanup(func() { sdk.SetErrorHandler(before) })
	for name, handle := range badCollectors {
		for _, signal := range []string{"metrics", "logs"} {
			t.Run(name+" "+signal, func(t *testing.T) { testBadCollector(t, signal, handle) })
		}
	}
}

func testBadCollector(t *testing.T, signal string, handle func(c *badCollector, w http.ResponseWriter, r *http.Request)) {
	collector := &badCollector{handle: handle, arrived: make(chan struct{}, 1), ended: make(chan struct{})}
	h := httptest.NewServer(collector)
	if handle == nil {
		h.Close()
	}
	o, err := otel.New()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	var shutdown func(context.Context) error
	if signal == "logs" {
		log, shutdown = exportLogs(t, h.Listener.Addr().String())
	} else {
		shutdown = exportMetrics(t, h.Listener.Addr().String(), o)
	}
	var ran atomic.Int64
	s := anser.NewServer(silent, o.Option())
	anser.Handle(s, "Shop.Sell", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		log.WarnContext(ctx, "sold", "n", ran.Add(1))
		return in, nil
	})
	c := dial(t, serve(t, s), o.Option())
	sell := func(n int) {
		for range n {
			if _, err := anser.Call[[]byte](t.Context(), c, "Shop.Sell", new([]byte)); err != nil {
				t.Fatal(err)
			}
		}
	}
	sell(100)
	if handle != nil {
		<-collector.arrived // the exporter waits for the collector from here on, if that hangs
	}
	sell(1900)
	if n := ran.Load(); n != 2000 {
		t.Errorf("%d calls ran, want 2000", n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	shutdown(ctx) // it would wait for a collector that hangs, or that wants a retry in years
	close(collector.ended)
	h.Close()
	if n := collector.most; n > 2 { // the one that hangs, and the last one
		t.Errorf("%d requests at once", n)
	}
	if n := collector.bytes.Load(); n > 64<<10 {
		t.Errorf("a request has %d bytes of metrics, as if what was not delivered were kept", n)
	}
}

func exportMetrics(t *testing.T, address string, o *otel.Exporter) (shutdown func(context.Context) error) {
	exporter, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpoint(address), otlpmetrichttp.WithInsecure(), otlpmetrichttp.WithTimeout(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(exporter,
		metric.WithProducer(o.Producer()), metric.WithInterval(time.Millisecond), metric.WithTimeout(time.Hour)))).Shutdown
}

func exportLogs(t *testing.T, address string) (log *slog.Logger, shutdown func(context.Context) error) {
	exporter, err := otlploghttp.New(t.Context(), otlploghttp.WithEndpoint(address), otlploghttp.WithInsecure(), otlploghttp.WithTimeout(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	p := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter, sdklog.WithMaxQueueSize(logQueue),
		sdklog.WithExportMaxBatchSize(logBatch), sdklog.WithExportInterval(time.Millisecond), sdklog.WithExportTimeout(time.Hour))))
	return slog.New(otel.BridgedLogs(otelslog.NewHandler("shop", otelslog.WithLoggerProvider(p)))), p.Shutdown
}

// What is logged while the collector hangs is dropped once the queue is full, and does not wait.
func TestLogsOfACollectorThatHangsAreBounded(t *testing.T) {
	collector := &badCollector{handle: badCollectors["hangs"], arrived: make(chan struct{}, 1), ended: make(chan struct{})}
	h := httptest.NewServer(collector)
	defer h.Close()
	log, shutdown := exportLogs(t, h.Listener.Addr().String())
	log.Info("first")
	<-collector.arrived
	for range 2000 {
		log.Info("more")
	}
	close(collector.ended)
	if err := shutdown(context.Background()); err != nil { // it sends what was kept
		t.Fatal(err)
	}
	// The queue, and the batches that are being sent or wait to be.
	if n := collector.records.Load(); n < logQueue || n > logQueue+4*logBatch {
		t.Errorf("%d records were kept of 2001, want %d and some batches of %d", n, logQueue, logBatch)
	}
}

package otel_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/anser-rpc/anser/telemetry/otel"
)

// A collector that is down, never answers or answers nonsense does not disturb calls.
func TestCollectorsOfAllKinds(t *testing.T) {
	ended := make(chan struct{})
	for name, handle := range map[string]http.HandlerFunc{
		"down":  nil,
		"slow":  func(_ http.ResponseWriter, r *http.Request) { <-ended },
		"error": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"lying": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			w.Write([]byte("\xff\xff\xffnonsense"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(handle)
			address := s.Listener.Addr().String()
			if handle == nil {
				s.Close()
			}
			exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpoint(address), otlptracehttp.WithInsecure(),
				otlptracehttp.WithTimeout(time.Minute), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
			if err != nil {
				t.Fatal(err)
			}
			p := sdktrace.NewTracerProvider(otel.Sampler(nil), otel.IDs(), sdktrace.WithBatcher(exporter,
				sdktrace.WithMaxQueueSize(64), sdktrace.WithMaxExportBatchSize(16), sdktrace.WithBatchTimeout(time.Millisecond)))
			o, err := otel.New(otel.Traces(p))
			if err != nil {
				t.Fatal(err)
			}
			x := newSides(t, &export{Exporter: o})
			for range 2000 {
				if err := x.buy(t.Context(), "it"); err != nil {
					t.Fatal(err)
				}
			}
			if name == "slow" {
				close(ended)
			}
			p.Shutdown(context.Background())
			if handle != nil {
				s.Close()
			}
		})
	}
}

package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Spans of all processes that a call of a demo goes through reach the collector that the
// environment names, as one trace.
func TestDemoIsTraced(t *testing.T) { // not parallel: it sets the environment
	whole := make(chan string, 1)
	collector := httptest.NewServer(collect(whole, 4)) // the callers, front, posts and arith
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--listen", "127.0.0.1:0", "--serve", "127.0.0.1:0", "--every", "0s", "--rate", "200")
	select {
	case <-whole:
	case <-time.After(2 * time.Minute):
		t.Error("no trace has spans of four services")
	}
	if _, code := p.signal(os.Interrupt); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.errOut.String())
	}
	expectEmpty(t, tmp)
}

// A collector that is away does not disturb a demo, which says so.
func TestDemoWithoutItsCollector(t *testing.T) { // not parallel: it sets the environment
	collector := httptest.NewServer(nil)
	collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--listen", "127.0.0.1:0", "--serve", "127.0.0.1:0", "--every", "0s", "--rate", "200")
	p.line("are not exported: ")
	if _, code := p.signal(os.Interrupt); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.errOut.String())
	}
	expectEmpty(t, tmp)
}

// collect is a collector that sends the first trace that has spans of n services.
func collect(whole chan<- string, n int) http.Handler {
	var mu sync.Mutex
	services := make(map[string]map[string]bool) // by trace
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		in := new(tracecollector.ExportTraceServiceRequest)
		if err == nil {
			err = proto.Unmarshal(body, in)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, from := range in.ResourceSpans {
			service := ""
			for _, a := range from.Resource.Attributes {
				if a.Key == "service.name" {
					service = a.Value.GetStringValue()
				}
			}
			for _, scope := range from.ScopeSpans {
				for _, span := range scope.Spans {
					id := hex.EncodeToString(span.TraceId)
					if services[id] == nil {
						services[id] = make(map[string]bool)
					}
					if services[id][service] = true; len(services[id]) == n {
						select {
						case whole <- id:
						default:
						}
					}
				}
			}
		}
	})
}

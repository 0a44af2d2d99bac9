package command_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// The counters of a gateway are among its metrics.
func TestGatewayMetrics(t *testing.T) {
	base, out := runGateway(t, t.TempDir(), "{}\n", "--admin", "127.0.0.1:0")
	resp, err := http.Post(base+"/no/Such.Method", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	_, line, _ := strings.Cut(out.String(), "admin page at ")
	page, _, _ := strings.Cut(line, ",")
	if resp, err = http.Get(page + "metrics"); err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	for _, want := range []string{
		"\nanser_gateway_calls_total 1\n", "\nanser_gateway_calls_failed_total 0\n", "\nanser_gateway_reloads_total 0\n",
		"\nanser_gateway_services{state=\"served\"} 1\n", "\nanser_gateway_services{state=\"problem\"} 0\n", "\nanser_gateway_calls_refused_total ",
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the metrics lack %q:\n%s", want, b)
		}
	}
}

// The spans of a gateway, on both of its sides, reach the collector that the environment names.
func TestGatewayIsTraced(t *testing.T) { // not parallel: it sets the environment
	kinds := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		in := new(tracecollector.ExportTraceServiceRequest)
		if r.URL.Path != "/v1/traces" || proto.Unmarshal(body, in) != nil {
			return
		}
		for _, from := range in.ResourceSpans {
			for _, a := range from.Resource.Attributes {
				if a.Key == "service.name" && a.Value.GetStringValue() == "edge" {
					for _, scope := range from.ScopeSpans {
						for _, span := range scope.Spans {
							select {
							case kinds <- span.Kind.String():
							default:
							}
						}
					}
				}
			}
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	t.Setenv("OTEL_SERVICE_NAME", "edge")
	runGateway(t, t.TempDir(), "{}\n", "--traced", "1")
	seen := make(map[string]bool)
	for !seen["SPAN_KIND_SERVER"] || !seen["SPAN_KIND_CLIENT"] {
		select {
		case k := <-kinds:
			seen[k] = true
		case <-t.Context().Done():
			t.Fatal("no spans of both sides arrived")
		}
	}
}

// A gateway refuses what it cannot export.
func TestGatewayRefusesExports(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	dir := t.TempDir()
	at := "file://" + dir + "/registry.json"
	run(t, "gateway", "--registry", at, "--traced", "2").expect(t, 2, "--traced 2: want a share from 0 to 1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	run(t, "gateway", "--registry", at).expect(t, 2, `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"`)
}

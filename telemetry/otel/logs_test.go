package otel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry/otel"
)

func TestLogs(t *testing.T) {
	for share, recorded := range map[float64]bool{0: false, 1: true} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(t, otel.Ratio(share))
			out := new(bytes.Buffer)
			log := slog.New(otel.Logs(slog.NewJSONHandler(out, nil))).With("service", "shop").WithGroup("call")
			var trace anser.Trace
			c := chain(t, m, func(ctx context.Context) error {
				trace, _ = anser.TraceFrom(ctx)
				log.InfoContext(ctx, "sold", "things", 3)
				return nil
			})
			do(t.Context(), c)
			var line struct {
				Service string
				Trace   string `json:"trace_id"`
				Span    string `json:"span_id"`
				Call    struct {
					Things int
				}
			}
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if line.Service != "shop" || line.Call.Things != 3 || line.Trace != idOf(trace.TraceID[:]) || line.Span != idOf(trace.SpanID[:]) {
				t.Errorf("%s with the trace %x, %x", out, trace.TraceID, trace.SpanID)
			}
			synctest.Wait()
			found := false
			for _, s := range m.take() {
				found = found || s.SpanContext().SpanID().String() == line.Span
			}
			if found != recorded {
				t.Errorf("a span with the id of the line: %v, want %v", found, recorded)
			}
			out.Reset()
			log.Info("no context")
			if bytes.Contains(out.Bytes(), []byte("trace_id")) {
				t.Errorf("%s", out)
			}
		})
	}
}

// The log of a handler arrives over OTLP with the ids of its call, recorded or not.
func TestLogsOverOTLP(t *testing.T) {
	for share, recorded := range map[float64]bool{0: false, 1: true} {
		for name, way := range ways {
			t.Run(fmt.Sprint(name, " ", share), func(t *testing.T) { testLogsOverOTLP(t, newExport(t, append(way, otel.Ratio(share))...), recorded) })
		}
	}
}

func testLogsOverOTLP(t *testing.T, e *export, recorded bool) {
	exporter, err := otlploghttp.New(t.Context(), otlploghttp.WithEndpoint(e.r.address), otlploghttp.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
	log := slog.New(otel.BridgedLogs(otelslog.NewHandler("shop", otelslog.WithLoggerProvider(provider)))).With("shop", 1)

	s := anser.NewServer(silent, e.Option())
	var own anser.Trace
	anser.Handle(s, "Shop.Sell", func(ctx context.Context, in *[]byte) (*[]byte, error) {
		own, _ = anser.TraceFrom(ctx)
		log.WarnContext(ctx, "sold", "things", 3)
		return in, nil
	})
	c := dial(t, serve(t, s), e.Option())
	if _, err := anser.Call[[]byte](t.Context(), c, "Shop.Sell", new([]byte)); err != nil {
		t.Fatal(err)
	}
	log.Info("no call")
	if err := provider.Shutdown(t.Context()); err != nil { // it sends what it has
		t.Fatal(err)
	}
	var spans []*traces.Span
	if recorded {
		spans = eventually(t, e, 2)
	}
	e.r.mu.Lock()
	defer e.r.mu.Unlock()
	if len(e.r.logs) != 2 || len(e.r.wrong) > 0 {
		t.Fatalf("%d records %v, wrong: %v", len(e.r.logs), e.r.logs, e.r.wrong)
	}
	r := e.r.logs[0]
	if r.Body.GetStringValue() != "sold" || r.SeverityText != "WARN" || !strings.Contains(textOf(r.Attributes), "shop=1") || !strings.Contains(textOf(r.Attributes), "things=3") {
		t.Errorf("the record is %v", r)
	}
	if text := textOf(r.Attributes); strings.Contains(text, "trace_id") || strings.Contains(text, "span_id") {
		t.Errorf("the record has the ids twice: %s", text)
	}
	if own.TraceID == [16]byte{} || idOf(r.TraceId) != idOf(own.TraceID[:]) || idOf(r.SpanId) != idOf(own.SpanID[:]) {
		t.Errorf("the record has the ids %s and %s, the call %x and %x", idOf(r.TraceId), idOf(r.SpanId), own.TraceID, own.SpanID)
	}
	if recorded && (idOf(spans[1].SpanId) != idOf(r.SpanId) || idOf(spans[0].TraceId) != idOf(r.TraceId)) {
		t.Errorf("the record has the ids %s and %s, the spans are %v", idOf(r.TraceId), idOf(r.SpanId), spans)
	}
	if want := uint32(map[bool]int{true: 1}[recorded]); r.Flags&1 != want {
		t.Errorf("the flags of the record are %x, want %x", r.Flags, want)
	}
	if r := e.r.logs[1]; len(r.TraceId) != 0 || len(r.SpanId) != 0 {
		t.Errorf("a record without a call has the ids %s and %s", idOf(r.TraceId), idOf(r.SpanId))
	}
}

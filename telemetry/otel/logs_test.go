package otel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"

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

package otel_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// hostile are texts that others may choose.
var hostile = []string{"A.\xff", "A.\xfe", "A.<script>\x1b]0;t\x07\n\u202e", "A.\x00", "A." + strings.Repeat("é", 10_000)}

// Names that are not valid UTF-8 cost neither their own spans nor the spans of other calls:
// protobuf refuses to encode such a text, and with it all that is sent together.
func TestHostileNames(t *testing.T) {
	e := newExport(t, otel.Ratio(1))
	x := newSides(t, e)
	ended := 0
	for _, name := range hostile {
		in := []byte("it")
		anser.Call[[]byte](t.Context(), x.c, name, &in)
		ended++
	}
	if err := x.buy(t.Context(), "it"); err != nil {
		t.Fatal(err)
	}
	ended++
	clients := 0
	for _, s := range e.take(t) {
		text := s.Name + textOf(s.Attributes)
		for _, event := range s.Events {
			text += textOf(event.Attributes)
		}
		if !utf8.ValidString(text) || len(s.Name) > 1100 {
			t.Errorf("a span has the name %.100q, and %d bytes of attributes", s.Name, len(text))
		}
		if s.Kind == traces.Span_SPAN_KIND_CLIENT {
			clients++
		}
	}
	if clients != ended {
		t.Errorf("%d of %d spans of the client have arrived", clients, ended)
	}
	m := e.collect(t)[otel.ClientDuration]
	seen, calls := make(map[string]bool), uint64(0)
	for _, p := range m.GetExponentialHistogram().GetDataPoints() {
		series := textOf(p.Attributes)
		if !utf8.ValidString(series) || seen[series] {
			t.Errorf("a series is not valid or comes twice: %.200q", series)
		}
		seen[series] = true
		calls += p.Count
	}
	if calls != uint64(ended) {
		t.Errorf("%d of %d calls are in the metrics", calls, ended)
	}
}

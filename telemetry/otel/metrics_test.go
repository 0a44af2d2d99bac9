package otel_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// What arrives over OTLP: one point a method and code, without the addresses of peers.
func TestMetrics(t *testing.T) {
	e := newExport(t)
	x := newSides(t, e)
	for range 3 {
		x.buy(t.Context(), "it")
	}
	x.buy(t.Context(), "missing")
	x.buy(t.Context(), "broken")
	anser.Call[[]byte](t.Context(), x.c, "Shop.Invented", new([]byte))
	eventually(t, e, 11)
	want := map[string][]string{
		"rpc.client.call.duration": {
			"1 error.type=INTERNAL rpc.method=Shop/Buy rpc.status_code=INTERNAL rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"1 error.type=NOT_FOUND rpc.method=Shop/Buy rpc.status_code=NOT_FOUND rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"1 error.type=UNIMPLEMENTED rpc.method=Shop/Invented rpc.status_code=UNIMPLEMENTED rpc.system.name=anser server.address=127.0.0.1 server.port=P",
			"3 rpc.method=Shop/Buy rpc.status_code=OK rpc.system.name=anser server.address=127.0.0.1 server.port=P",
		},
		"rpc.server.call.duration": {
			"1 error.type=INTERNAL rpc.method=Shop/Buy rpc.status_code=INTERNAL rpc.system.name=anser",
			"1 error.type=UNIMPLEMENTED rpc.method=_OTHER rpc.status_code=UNIMPLEMENTED rpc.system.name=anser",
			"1 rpc.method=Shop/Buy rpc.status_code=NOT_FOUND rpc.system.name=anser",
			"3 rpc.method=Shop/Buy rpc.status_code=OK rpc.system.name=anser",
		},
	}
	got := e.collect(t)
	for name, points := range want {
		m := got[name]
		if m == nil || m.Unit != "s" || m.Description == "" || m.GetExponentialHistogram().GetAggregationTemporality() != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
			t.Fatalf("%s is %v", name, m)
		}
		var lines []string
		for _, p := range m.GetExponentialHistogram().DataPoints {
			lines = append(lines, string(rune('0'+p.Count))+" "+textOf(p.Attributes))
			total := uint64(0)
			for _, n := range p.Positive.BucketCounts {
				total += n
			}
			if p.Scale != 3 || total != p.Count || p.GetSum() < 0 || p.StartTimeUnixNano == 0 || p.StartTimeUnixNano >= p.TimeUnixNano {
				t.Errorf("%s has the point %v", name, p)
			}
			if len(p.Exemplars) != 1 && !strings.Contains(lines[len(lines)-1], "_OTHER") || len(p.Exemplars) > 0 && len(p.Exemplars[0].TraceId) != 16 {
				t.Errorf("%s has the exemplars %v", lines[len(lines)-1], p.Exemplars)
			}
		}
		slices.Sort(lines)
		if !slices.Equal(lines, points) {
			t.Errorf("%s has the points\n%s\nwant\n%s", name, strings.Join(lines, "\n"), strings.Join(points, "\n"))
		}
	}
	if len(got) != len(want) {
		t.Errorf("metrics %v", got)
	}
}

// Fixed buckets get the calls that the exponential ones have, in their place.
func TestBuckets(t *testing.T) {
	e := newExport(t)
	observer := e.Meter().Observer()
	for _, d := range []time.Duration{10 * time.Microsecond, 70 * time.Microsecond, 3 * time.Millisecond, 80 * time.Millisecond, time.Minute} {
		observer.CallEnded(t.Context(), &anser.CallInfo{Server: true, Method: "Shop.Buy", Duration: d})
	}
	for _, test := range []struct {
		bounds []float64
		want   []uint64
	}{
		{otel.StandardBounds(), []uint64{3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
		{otel.FineBounds(), []uint64{1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
	} {
		h := e.collect(t, otel.Buckets(test.bounds...))["rpc.server.call.duration"].GetHistogram()
		if h == nil || len(h.DataPoints) != 1 {
			t.Fatal(h)
		}
		if p := h.DataPoints[0]; !slices.Equal(p.ExplicitBounds, test.bounds) || !slices.Equal(p.BucketCounts, test.want) || p.Count != 5 {
			t.Errorf("bounds %v: counts %v, want %v", test.bounds, p.BucketCounts, test.want)
		}
	}
	for _, wrong := range [][]float64{nil, {0, 1}, {1, 1}, {2, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for the bounds %v", wrong)
				}
			}()
			e.Producer(otel.Buckets(wrong...))
		}()
	}
}

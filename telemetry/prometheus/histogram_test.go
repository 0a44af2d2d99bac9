package prometheus_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// Both forms of a histogram have every call in the bucket whose bounds contain its duration.
func TestBuckets(t *testing.T) {
	m := telemetry.New()
	var durations []time.Duration
	for range 20_000 {
		durations = append(durations, time.Duration(math.Exp(rand.Float64()*math.Log(40e9))))
	}
	// Far apart, and one after the other.
	durations = append(durations, 0, 8, time.Microsecond, 30517, 30518, 61035, 61036, time.Second, 2*time.Second, 16*time.Second, 16*time.Second+1, 30*time.Minute)
	for _, d := range durations {
		ended(m, &anser.CallInfo{Server: true, Method: "A.B", Duration: d})
	}
	var h *dto.Histogram
	for _, f := range gather(t, m) {
		if f.GetName() == "anser_server_call_duration_seconds" {
			h = f.Metric[0].Histogram
		}
	}
	if h.GetSampleCount() != uint64(len(durations)) || h.GetSchema() != 3 {
		t.Fatalf("%d calls, schema %d", h.GetSampleCount(), h.GetSchema())
	}
	for _, b := range h.Bucket {
		want := uint64(0)
		for _, d := range durations {
			if d.Seconds() <= b.GetUpperBound() {
				want++
			}
		}
		if b.GetCumulativeCount() != want {
			t.Errorf("%d calls up to %v s, want %d", b.GetCumulativeCount(), b.GetUpperBound(), want)
		}
	}
	counts := make(map[int]int64)
	for _, d := range durations {
		counts[bucketOf(d)]++
	}
	at, i, count := 0, 0, int64(0)
	for _, span := range h.PositiveSpan {
		at += int(span.GetOffset())
		for range span.GetLength() {
			count += h.PositiveDelta[i]
			if counts[at] != count {
				t.Errorf("%d calls in the bucket %d, want %d", count, at, counts[at])
			}
			delete(counts, at)
			at, i = at+1, i+1
		}
	}
	for at, n := range counts {
		t.Errorf("%d calls of the bucket %d are missing", n, at)
	}
	if i != len(h.PositiveDelta) || len(h.PositiveSpan) < 2 {
		t.Errorf("%d of %d deltas in %d spans", i, len(h.PositiveDelta), len(h.PositiveSpan))
	}
}

// bucketOf returns the index of the bucket of a native histogram with the schema 3: the durations
// up to 2^(index/8) s. The first one has all that are shorter, too.
func bucketOf(d time.Duration) int {
	i := -27*8 + 1
	for i < 11*8 && d.Seconds() > math.Exp2(float64(i)/8) {
		i++
	}
	return i
}

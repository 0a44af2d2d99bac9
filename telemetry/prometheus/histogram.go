package prometheus

import (
	"encoding/hex"
	"math"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/anser-rpc/anser/telemetry"
)

// The upper bounds of the classic buckets are the powers of 2 from 2^-15 s, 31 µs, to 2^4 s. They
// are bounds of the meter's buckets, so the counts are exact.
const (
	firstPower = -15
	lastPower  = 4
	perPower   = 1 << telemetry.Scale // buckets of the meter
)

// distribution is a histogram of durations in both of its forms: a native histogram with exactly
// the buckets of the meter, and classic buckets for a Prometheus that does not scrape those.
type distribution struct {
	desc   *prom.Desc
	labels []*dto.LabelPair
	value  *dto.Histogram
}

func newDistribution(f *family, h *telemetry.Histogram, example *telemetry.Exemplar, labels ...string) distribution {
	v := &dto.Histogram{
		SampleCount: new(h.Count), SampleSum: new(h.Sum.Seconds()),
		Schema: new(int32(telemetry.Scale)), ZeroThreshold: new(prom.DefNativeHistogramZeroThreshold), ZeroCount: new(uint64(0)),
		Bucket: classic(h),
	}
	v.PositiveSpan, v.PositiveDelta = native(h)
	if example != nil {
		e := exemplar(example)
		v.Exemplars = []*dto.Exemplar{e}
		for _, b := range v.Bucket {
			if *e.Value <= *b.UpperBound {
				b.Exemplar = e
				break
			}
		}
	}
	return distribution{f.desc, prom.MakeLabelPairs(f.desc, labels), v}
}

// Desc implements [prom.Metric].
func (d distribution) Desc() *prom.Desc { return d.desc }

// Write implements [prom.Metric].
func (d distribution) Write(m *dto.Metric) error {
	m.Label, m.Histogram = d.labels, d.value
	return nil
}

// native returns the buckets as spans of consecutive ones, and each count as the difference to the
// one before.
func native(h *telemetry.Histogram) (spans []*dto.BucketSpan, deltas []int64) {
	next, last := 0, int64(0) // index after the last bucket, and its count
	add := func(count int64) {
		*spans[len(spans)-1].Length++
		deltas = append(deltas, count-last)
		last = count
	}
	for i, n := range h.All() {
		i++ // Prometheus numbers buckets by their upper bounds, and the meter by the lower ones
		gap := i - next
		if len(spans) == 0 || gap > 2 {
			spans = append(spans, &dto.BucketSpan{Offset: new(int32(gap)), Length: new(uint32(0))})
			gap = 0
		}
		for range gap { // a few empty buckets take less room than a span
			add(0)
		}
		add(int64(n))
		next = i + 1
	}
	return spans, deltas
}

// classic returns the cumulative counts of the classic buckets. The last one has no upper bound.
func classic(h *telemetry.Histogram) (buckets []*dto.Bucket) {
	var sum uint64
	next := 0 // of h.Counts
	for power := firstPower; power <= lastPower; power++ {
		for next < len(h.Counts) && h.First+next < power*perPower {
			sum += h.Counts[next]
			next++
		}
		buckets = append(buckets, &dto.Bucket{UpperBound: new(math.Ldexp(1, power)), CumulativeCount: new(sum)})
	}
	return append(buckets, &dto.Bucket{UpperBound: new(math.Inf(1)), CumulativeCount: new(h.Count)})
}

func exemplar(e *telemetry.Exemplar) *dto.Exemplar {
	label := func(name string, value []byte) *dto.LabelPair {
		return &dto.LabelPair{Name: &name, Value: new(hex.EncodeToString(value))}
	}
	return &dto.Exemplar{
		Label: []*dto.LabelPair{label("span_id", e.SpanID[:]), label("trace_id", e.TraceID[:])},
		Value: new(e.Duration.Seconds()), Timestamp: timestamppb.New(e.Time),
	}
}

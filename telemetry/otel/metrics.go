package otel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/anser-rpc/anser/telemetry"
)

// StandardBounds returns the bounds of buckets, in seconds, that the conventions recommend. They
// begin at 5 ms, which is longer than most calls in a data center take.
func StandardBounds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
}

// FineBounds returns bounds that begin at 50 µs.
func FineBounds() []float64 {
	return append([]float64{0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025}, StandardBounds()...)
}

// ProducerOption configures [Exporter.Producer].
type ProducerOption func(*producer) error

// Buckets makes the histograms have fixed buckets with these upper bounds in seconds, ascending,
// for a backend that does not know exponential histograms. As the meter counts durations in buckets
// of its own, durations up to 5 % from a bound may count on its other side; see [telemetry.Scale].
func Buckets(bounds ...float64) ProducerOption {
	return func(p *producer) error {
		if len(bounds) == 0 || bounds[0] <= 0 {
			return errors.New("otel.Buckets: want at least one bound, and bounds above 0")
		}
		for i := range bounds[1:] {
			if !(bounds[i] < bounds[i+1]) {
				return fmt.Errorf("otel.Buckets: the bound %v follows %v: want ascending ones", bounds[i+1], bounds[i])
			}
		}
		p.bounds = slices.Clone(bounds)
		return nil
	}
}

// Producer returns what a reader of the SDK collects the metrics from: rpc.server.call.duration and
// rpc.client.call.duration as exponential histograms with the scale 3, cumulative since the
// exporter was made. Exemplars lead to recorded traces. Producer panics if an option is not valid.
func (o *Exporter) Producer(opts ...ProducerOption) metric.Producer {
	p := &producer{o: o}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("otel: an option of Producer is nil"))
			continue
		}
		errs = append(errs, opt(p))
	}
	if err := errors.Join(errs...); err != nil {
		panic(err)
	}
	return p
}

type producer struct {
	o      *Exporter
	bounds []float64 // nil: exponential histograms
}

// Produce returns what was measured so far.
func (p *producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	if !p.o.made() {
		return nil, errors.New("otel: the exporter was not made by otel.New")
	}
	snap := p.o.meter.Snapshot()
	out := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scope}}
	for _, side := range []struct {
		server            bool
		name, description string
	}{
		{true, ServerDuration, "Duration of the calls that were received."},
		{false, ClientDuration, "Duration of the calls that were made, with all their attempts."},
	} {
		m := metricdata.Metrics{Name: side.name, Description: side.description, Unit: "s"}
		if p.bounds == nil {
			m.Data = metricdata.ExponentialHistogram[float64]{
				Temporality: metricdata.CumulativeTemporality, DataPoints: collect(p, &snap, side.server, exponential),
			}
		} else {
			m.Data = metricdata.Histogram[float64]{
				Temporality: metricdata.CumulativeTemporality, DataPoints: collect(p, &snap, side.server, p.explicit),
			}
		}
		out.Metrics = append(out.Metrics, m)
	}
	return []metricdata.ScopeMetrics{out}, nil
}

// common is what points of both kinds have.
type common struct {
	attrs      attribute.Set
	began, now time.Time
	times      *telemetry.Histogram
	exemplars  []metricdata.Exemplar[float64]
}

// collect makes the points of one side. What differs in the meter and has the same attributes, such
// as the same service in two registries, is one series.
func collect[P any](p *producer, snap *telemetry.Snapshot, server bool, point func(*common) P) (points []P) {
	var list []common
	places := make(map[attribute.Distinct]int)
	for i := range snap.Methods {
		m := &snap.Methods[i]
		if m.Server != server {
			continue
		}
		for j := range m.Codes {
			s := &m.Codes[j]
			if s.Times.Count == 0 {
				continue
			}
			attrs := seriesOf(m, s)
			if at, ok := places[attrs.Equivalent()]; ok {
				list[at].times.Add(&s.Times)
				list[at].exemplars = append(list[at].exemplars, exemplarsOf(s)...)
				continue
			}
			places[attrs.Equivalent()] = len(list)
			list = append(list, common{attrs: attrs, began: p.o.began, now: snap.Time, times: &s.Times, exemplars: exemplarsOf(s)})
		}
	}
	for i := range list {
		points = append(points, point(&list[i]))
	}
	return points
}

// seriesOf returns the attributes of a series. The address of the peer is not among them: there may
// be any number of them.
func seriesOf(m *telemetry.Method, s *telemetry.Series) attribute.Set {
	status := StatusOf(s.Code)
	attrs := []attribute.KeyValue{KeySystem.String(system), KeyMethod.String(MethodOf(m.Name)), KeyStatus.String(status)}
	if isError(s.Code, m.Server) {
		attrs = append(attrs, KeyErrorType.String(status))
	}
	if !m.Server {
		attrs = appendServer(attrs, m.Target)
	}
	return attribute.NewSet(attrs...)
}

func exemplarsOf(s *telemetry.Series) []metricdata.Exemplar[float64] {
	if s.Exemplar == nil {
		return nil
	}
	e := s.Exemplar
	return []metricdata.Exemplar[float64]{{Time: e.Time, Value: e.Duration.Seconds(), TraceID: e.TraceID[:], SpanID: e.SpanID[:]}}
}

func exponential(c *common) metricdata.ExponentialHistogramDataPoint[float64] {
	return metricdata.ExponentialHistogramDataPoint[float64]{
		Attributes: c.attrs, StartTime: c.began, Time: c.now, Count: c.times.Count, Sum: c.times.Sum.Seconds(), Scale: telemetry.Scale,
		PositiveBucket: metricdata.ExponentialBucket{Offset: int32(c.times.First), Counts: c.times.Counts}, Exemplars: c.exemplars,
	}
}

func (p *producer) explicit(c *common) metricdata.HistogramDataPoint[float64] {
	counts := make([]uint64, len(p.bounds)+1)
	for i, n := range c.times.All() {
		middle := (telemetry.Bound(i-1) + telemetry.Bound(i)) / 2
		at, _ := slices.BinarySearch(p.bounds, middle.Seconds())
		counts[at] += n
	}
	return metricdata.HistogramDataPoint[float64]{
		Attributes: c.attrs, StartTime: c.began, Time: c.now, Count: c.times.Count, Sum: c.times.Sum.Seconds(),
		Bounds: p.bounds, BucketCounts: counts, Exemplars: c.exemplars,
	}
}

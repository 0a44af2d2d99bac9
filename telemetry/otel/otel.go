// Package otel exports the calls of servers and clients to OpenTelemetry: spans, metrics, and the
// ids of traces in logs, by the semantic conventions for RPC.
//
//	spans := sdktrace.NewBatchSpanProcessor(exporter)
//	traces := sdktrace.NewTracerProvider(otel.Sampler(nil), otel.IDs(), sdktrace.WithSpanProcessor(spans))
//	o, err := otel.New(otel.Traces(traces), otel.Direct(spans), otel.Ratio(0.01), otel.Tail(100*time.Millisecond))
//	metrics := metric.NewMeterProvider(metric.WithReader(
//		metric.NewPeriodicReader(metricExporter, metric.WithProducer(o.Producer()))))
//	s := anser.NewServer(o.Option())
//	c, err := anser.Dial(target, o.Option())
//
// The decision whether a call is traced is made here, before the SDK is asked. A call that is not
// traced costs neither work of the SDK nor memory, and metrics are made of what a
// [telemetry.Meter] counts only when they are collected.
package otel

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// Option configures an [Exporter].
type Option func(*Exporter) error

// Traces makes the exporter record spans with a provider, which should be made with the options of
// [Sampler] and [IDs]. Without it there are no spans.
func Traces(p trace.TracerProvider) Option {
	return func(o *Exporter) error {
		if p == nil {
			return errors.New("otel.Traces: the provider is nil")
		}
		o.provider, o.tracer = p, p.Tracer(scope)
		return nil
	}
}

// Ratio sets the share of the calls that begin a trace and are recorded, from 0 to 1; the default
// is 1. A call that continues a trace is recorded if its parent is.
func Ratio(share float64) Option {
	return func(o *Exporter) error {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("otel.Ratio(%v): want a share from 0 to 1", share)
		}
		o.below = uint64(share * (1 << 63))
		return nil
	}
}

// Tail also records calls that fail, and calls other than streams that take slow or longer, when
// they have ended; 0 means only calls that fail. Their spans have no children but calls that [Tail]
// records itself, and no events of the handler. At most [TailRate] such spans are recorded in a
// second; the others are counted by [Exporter.TailDropped].
func Tail(slow time.Duration) Option {
	return func(o *Exporter) error {
		if slow < 0 {
			return fmt.Errorf("otel.Tail(%v): want at least 0", slow)
		}
		if slow == 0 {
			slow = math.MaxInt64
		}
		o.slow = slow
		return nil
	}
}

// TailRate sets how many spans a second [Tail] may record; the default is 100.
func TailRate(n int) Option {
	return func(o *Exporter) error {
		if n < 1 {
			return fmt.Errorf("otel.TailRate(%d): want at least 1", n)
		}
		o.tail.most = int64(n)
		return nil
	}
}

// Meter sets the meter whose measurements [Exporter.Producer] exports, to share it with other
// readers; the default is one of its own. It must not be given to a server or a client as well:
// [Exporter.Option] contains it.
func Meter(m *telemetry.Meter) Option {
	return func(o *Exporter) error {
		if m.Observer().Measure == nil {
			return errors.New("otel.Meter: the meter is nil, or was not made by telemetry.New")
		}
		o.meter = m
		return nil
	}
}

// Exporter connects any number of servers and clients to OpenTelemetry. It is safe for concurrent
// use. It starts no goroutine: what is exported when is up to the providers of the SDK.
type Exporter struct {
	meter    *telemetry.Meter
	measures anser.Observer // of the meter
	began    time.Time

	provider trace.TracerProvider // nil: no spans
	tracer   trace.Tracer
	direct   []sdktrace.SpanProcessor
	origin   atomic.Pointer[origin] // of direct spans; nil: not known yet
	below    uint64                 // a trace is recorded if the lower 63 bits of its id are below
	slow     time.Duration          // from which on a call is recorded at its end; 0: no call is, not even if it failed
	tail     pace
	serves   atomic.Bool                      // a server has the option
	target   atomic.Pointer[targetAttributes] // the latest one of a client's span
}

// New returns an exporter, or an error if an option is not valid.
func New(opts ...Option) (*Exporter, error) {
	o := &Exporter{began: time.Now(), below: 1 << 63, tail: pace{most: 100}}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("otel.New: an option is nil"))
			continue
		}
		errs = append(errs, opt(o))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if o.meter == nil {
		o.meter = telemetry.New()
	}
	o.measures = o.meter.Observer()
	return o, nil
}

// Option returns an option for a server or a client whose calls it exports.
func (o *Exporter) Option() anser.Option {
	if !o.made() {
		return anser.Observe(anser.Observer{}) // an error, which the server or Dial returns
	}
	w := o.measures
	if o.tracer != nil {
		w.Made = func(side any) {
			if _, ok := side.(*anser.Server); ok {
				o.serves.Store(true)
			}
			o.measures.Made(side)
		}
		w.Trace, w.Measure, w.CallBegan, w.CallEnded = o.trace, o.measure, o.callBegan, o.callEnded
	}
	return anser.Observe(w)
}

// Meter returns the meter that counts the calls.
func (o *Exporter) Meter() *telemetry.Meter {
	if !o.made() {
		return nil
	}
	return o.meter
}

// made reports whether the exporter comes from New.
func (o *Exporter) made() bool { return o != nil && o.meter != nil }

// TailDropped returns how many spans were left out because there were more than [TailRate] in a
// second.
func (o *Exporter) TailDropped() uint64 {
	if !o.made() {
		return 0
	}
	return o.tail.dropped.Load()
}

// pace admits a number of events a second.
type pace struct {
	most    int64
	second  atomic.Int64 // for which taken counts
	taken   atomic.Int64
	dropped atomic.Uint64
}

func (p *pace) admits(now time.Time) bool {
	if s := now.Unix(); p.second.Swap(s) != s {
		p.taken.Store(0)
	}
	if p.taken.Add(1) <= p.most {
		return true
	}
	p.dropped.Add(1)
	return false
}

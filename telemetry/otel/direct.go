package otel

import (
	"context"
	"errors"
	"net"
	rt "runtime/trace"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"

	"github.com/anser-rpc/anser"
)

// Direct gives the spans of calls to processors without the help of the SDK. They must be all
// processors of the provider of [Traces]:
//
//	spans := sdktrace.NewBatchSpanProcessor(exporter)
//	traces := sdktrace.NewTracerProvider(otel.Sampler(nil), otel.IDs(), sdktrace.WithSpanProcessor(spans))
//	o, err := otel.New(otel.Traces(traces), otel.Direct(spans))
//
// A recorded call costs a fifth of the time and a seventh of the memory then: its attributes are
// made when the exporter asks for them. The spans are the same, but OnStart of the processors is
// not called, and the limits of the provider do not apply. The provider still makes the first span,
// that of a call whose handler adds something to it, all spans during an execution trace of the Go
// runtime, and all spans if it was made without the options of [Sampler] and [IDs].
func Direct(processors ...sdktrace.SpanProcessor) Option {
	return func(o *Exporter) error {
		for _, p := range processors {
			if p == nil {
				return errors.New("otel.Direct: a processor is nil")
			}
		}
		o.direct = processors
		return nil
	}
}

// origin has what all spans of a provider have in common: one of its spans.
type origin struct{ sdktrace.ReadOnlySpan }

// originOf returns the origin of a span that is made now, or nil if the provider must make it.
func (o *Exporter) originOf() *origin {
	if len(o.direct) == 0 || rt.IsEnabled() {
		return nil
	}
	return o.origin.Load()
}

// learn takes a span that the provider made as the origin of later ones.
func (o *Exporter) learn(span trace.Span, w *wish) {
	s, ok := span.(sdktrace.ReadOnlySpan)
	if len(o.direct) == 0 || !ok || !w.heard || o.origin.Load() != nil {
		return
	}
	if id := s.SpanContext(); id.SpanID() == trace.SpanID(w.ids.SpanID) && id.TraceID() == trace.TraceID(w.ids.TraceID) {
		o.origin.Store(&origin{s})
	}
}

// directSpan is the span of a call that the SDK did not make. It does not change once processors
// have it.
type directSpan struct {
	*origin
	o        *Exporter
	call     anser.CallInfo
	peer     net.Addr // on a server, or nil
	parent   trace.SpanContext
	began    time.Time
	tail     bool // it is recorded since the call was slow or failed
	children atomic.Int32
}

// newDirect returns the span of a call, which has ended if late is true.
func (o *Exporter) newDirect(ctx context.Context, from *origin, c *anser.CallInfo, late bool) *directSpan {
	s := &directSpan{origin: from, o: o, call: *c, began: c.Began(), peer: peerOf(ctx, c), parent: parentContext(ctx, &c.Parent)}
	if late && c.Trace.Flags&sampled == 0 {
		s.tail = true
		s.call.Trace.Flags |= sampled
	}
	return s
}

// deliver gives the span of a call that has ended to the processors.
func (s *directSpan) deliver() {
	for _, p := range s.o.direct {
		p.OnEnd(s)
	}
}

// Name implements sdktrace.ReadOnlySpan, as the following methods do.
func (s *directSpan) Name() string { return MethodOf(s.call.Method) }

func (s *directSpan) SpanContext() trace.SpanContext {
	t := &s.call.Trace
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: t.TraceID, SpanID: t.SpanID, TraceFlags: trace.TraceFlags(t.Flags), TraceState: s.Parent().TraceState(),
	})
}

func (s *directSpan) Parent() trace.SpanContext {
	if isDetached(&s.call) || !s.parent.IsValid() {
		return trace.SpanContext{}
	}
	return s.parent
}

func (s *directSpan) SpanKind() trace.SpanKind { return kindOf(&s.call) }

func (s *directSpan) StartTime() time.Time { return s.began }

func (s *directSpan) EndTime() time.Time { return s.began.Add(s.call.Duration) }

func (s *directSpan) Attributes() []attribute.KeyValue {
	attrs := s.o.appendBegin(make([]attribute.KeyValue, 0, maxAttributes), &s.call, s.peer)
	return appendEnd(appendFlag(attrs, KeyTail, s.tail), &s.call)
}

func (s *directSpan) Links() []sdktrace.Link {
	if !isDetached(&s.call) || !s.parent.IsValid() {
		return nil
	}
	return []sdktrace.Link{{SpanContext: s.parent}}
}

func (s *directSpan) Events() (list []sdktrace.Event) {
	eachAttempt(&s.call, s.EndTime(), func(at time.Time, attrs []attribute.KeyValue) {
		list = append(list, sdktrace.Event{Name: AttemptEvent, Attributes: attrs, Time: at})
	})
	return list
}

func (s *directSpan) Status() sdktrace.Status {
	if code := anser.CodeOf(s.call.Err); isError(code, s.call.Server) {
		return sdktrace.Status{Code: codes.Error, Description: code.String()}
	}
	return sdktrace.Status{}
}

func (s *directSpan) DroppedAttributes() int { return 0 }

func (s *directSpan) DroppedLinks() int { return 0 }

func (s *directSpan) DroppedEvents() int { return 0 }

func (s *directSpan) ChildSpanCount() int { return int(s.children.Load()) }

// liveKey is the key of the context of a recorded call for the span of an exporter. Observers and
// handlers may have put other spans into the context in between.
type liveKey struct{ o *Exporter }

// live is the span of a call that has not ended. A context may have that of the call around it. If
// the provider did not make the span, it is also the span that the handler finds in its context,
// and has the provider make one when the handler adds something.
type live struct {
	context.Context // of the handler, before this one
	embedded.Span
	o      *Exporter
	id     [8]byte         // of the span
	base   context.Context // without the span; nil: the provider made it at once
	record *directSpan     // nil: likewise

	mu    sync.Mutex // guards the fields below
	made  trace.Span // by the provider, or nil
	ended bool
}

// Value returns the live span itself, or what the context of the handler has.
func (l *live) Value(key any) any {
	if key == (liveKey{l.o}) {
		return l
	}
	return l.Context.Value(key)
}

// beginDirect puts the span of a call that begins into its context.
func (o *Exporter) beginDirect(ctx context.Context, from *origin, c *anser.CallInfo) context.Context {
	l := &live{o: o, id: c.Trace.SpanID, base: ctx, record: o.newDirect(ctx, from, c, false)}
	if t, _ := anser.TraceFrom(ctx); t != c.Trace { // a client, or a server that had no memory for it
		ctx = anser.WithTrace(ctx, c.Trace)
	}
	l.Context = trace.ContextWithSpan(ctx, l)
	return l
}

// end ends the span with what is known of the call. It returns the span of the provider, if that
// must be ended, or nil.
func (l *live) end(c *anser.CallInfo) trace.Span {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended = true; l.made == nil {
		l.record.call = *c
	}
	return l.made
}

// real returns the provider's span, or nil if the call has ended without one.
func (l *live) real() trace.Span {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil && !l.ended {
		_, l.made = l.o.begin(l.base, &l.record.call, l.record.began)
	}
	return l.made
}

// End implements trace.Span, as the following methods do. The span of a call ends with the call.
func (l *live) End(opts ...trace.SpanEndOption) {
	if s := l.real(); s != nil {
		s.End(opts...)
	}
}

func (l *live) AddEvent(name string, opts ...trace.EventOption) {
	if s := l.real(); s != nil {
		s.AddEvent(name, opts...)
	}
}

func (l *live) AddLink(link trace.Link) {
	if s := l.real(); s != nil {
		s.AddLink(link)
	}
}

func (l *live) IsRecording() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made != nil {
		return l.made.IsRecording()
	}
	return !l.ended
}

func (l *live) RecordError(err error, opts ...trace.EventOption) {
	if s := l.real(); s != nil {
		s.RecordError(err, opts...)
	}
}

func (l *live) SpanContext() trace.SpanContext {
	l.mu.Lock() // end writes the record
	defer l.mu.Unlock()
	return l.record.SpanContext()
}

func (l *live) SetStatus(code codes.Code, description string) {
	if s := l.real(); s != nil {
		s.SetStatus(code, description)
	}
}

func (l *live) SetName(name string) {
	if s := l.real(); s != nil {
		s.SetName(name)
	}
}

func (l *live) SetAttributes(attrs ...attribute.KeyValue) {
	if s := l.real(); s != nil {
		s.SetAttributes(attrs...)
	}
}

func (l *live) TracerProvider() trace.TracerProvider { return l.o.provider }

package otel

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/anser-rpc/anser"
)

// liveKey is the key of the context of a recorded call for its span. Observers and handlers may
// have put other spans into the context in between.
type liveKey struct{}

// live is the span of a call that has not ended, and the id that was chosen for it. A context may
// have that of the call around it.
type live struct {
	span trace.Span
	id   [8]byte
}

// callBegan starts the span of a call that is recorded, and passes on what goes along with traces.
func (o *Exporter) callBegan(ctx context.Context, c *anser.CallInfo) context.Context {
	switch {
	case c.Trace.Flags&sampled != 0:
		return o.beginSpan(ctx, c)
	case c.Server:
		return receive(ctx)
	case ctx == context.Background():
		return ctx
	}
	return send(ctx)
}

// beginSpan is a function of its own, with its own frame: most calls are not recorded.
//
//go:noinline
func (o *Exporter) beginSpan(ctx context.Context, c *anser.CallInfo) context.Context {
	if c.Server {
		ctx = receive(ctx)
	}
	ctx, span := o.begin(ctx, c)
	ctx = context.WithValue(ctx, liveKey{}, &live{span, c.Trace.SpanID})
	// The ids of the span are the exporter's, unless its provider was made without the option IDs.
	s := span.SpanContext()
	ctx = anser.WithTrace(ctx, anser.Trace{TraceID: s.TraceID(), SpanID: s.SpanID(), Flags: byte(s.TraceFlags())})
	if !c.Server {
		ctx = send(ctx)
	}
	return ctx
}

// measure returns what measures the calls of a method: the meter does. A call that is recorded, or
// deserves to be, is reported to callEnded.
func (o *Exporter) measure(k anser.CallKind) func(context.Context, anser.Measurement) bool {
	count := o.measures.Measure(k)
	return func(ctx context.Context, m anser.Measurement) bool {
		more := count(ctx, m) // always if the call failed
		return more || m.Sampled || o.slow != 0 && m.Duration >= o.slow
	}
}

// callEnded ends the span of a call, or records one if the call turned out to deserve it. The meter
// learns of the call after that, with the trace context for its exemplars.
func (o *Exporter) callEnded(ctx context.Context, c *anser.CallInfo) {
	if c.Trace.Flags&sampled == 0 && !o.deserves(c) {
		o.measures.CallEnded(ctx, c)
		return
	}
	o.endSpan(ctx, c)
}

//go:noinline
func (o *Exporter) endSpan(ctx context.Context, c *anser.CallInfo) {
	own := *c
	if l, _ := ctx.Value(liveKey{}).(*live); l != nil && l.id == c.Trace.SpanID {
		o.finish(l.span, c)
	} else {
		ctx = o.recordLate(ctx, &own) // which has ids of its own if c has none
	}
	o.measures.CallEnded(ctx, &own)
}

// deserves reports whether a call that has ended without a span gets one.
func (o *Exporter) deserves(c *anser.CallInfo) bool {
	if o.slow == 0 || c.Err == nil && (c.Duration < o.slow || c.Stream) {
		return false
	}
	return o.tail.admits(time.Now())
}

// recordLate records the span of a call that has ended, and returns the context with its trace.
func (o *Exporter) recordLate(ctx context.Context, c *anser.CallInfo) context.Context {
	if !isTrace(&c.Trace) { // a server refused the call, or had no memory for its trace
		inherited, _ := anser.TraceFrom(ctx)
		t := o.trace(ctx, anser.CallKind{Server: c.Server, Method: c.Method, Target: c.Target, Stream: c.Stream, Oneway: c.Oneway}, inherited)
		c.Trace, c.Parent = t.Own, t.Parent
	}
	room := rooms.Get().(*[]attribute.KeyValue)
	attrs := o.appendBegin((*room)[:0], ctx, c)
	if c.Trace.Flags&sampled == 0 {
		c.Trace.Flags |= sampled
		attrs = append(attrs, KeyTail.Bool(true))
	}
	attrs = appendEnd(attrs, c)
	began := c.Began()
	_, span := o.start(ctx, c, began, attrs)
	giveRoom(room, attrs)
	o.end(span, c, began.Add(c.Duration))
	s := span.SpanContext()
	return anser.WithTrace(ctx, anser.Trace{TraceID: s.TraceID(), SpanID: s.SpanID(), Flags: byte(s.TraceFlags())})
}

// rooms are for the attributes of a span, which the SDK copies.
var rooms = sync.Pool{New: func() any { return new(make([]attribute.KeyValue, 0, 24)) }}

func giveRoom(room *[]attribute.KeyValue, attrs []attribute.KeyValue) {
	clear(attrs)
	*room = attrs
	rooms.Put(room)
}

// begin starts the span of a call that begins.
func (o *Exporter) begin(ctx context.Context, c *anser.CallInfo) (context.Context, trace.Span) {
	room := rooms.Get().(*[]attribute.KeyValue)
	attrs := o.appendBegin((*room)[:0], ctx, c)
	defer giveRoom(room, attrs)
	return o.start(ctx, c, c.Began(), attrs)
}

// appendBegin appends the attributes that are known when a call begins.
func (o *Exporter) appendBegin(attrs []attribute.KeyValue, ctx context.Context, c *anser.CallInfo) []attribute.KeyValue {
	attrs = append(attrs, KeySystem.String(system), KeyMethod.String(MethodOf(c.Method)))
	if c.Server {
		if p, ok := anser.PeerFrom(ctx); ok && p.Addr != nil {
			attrs = appendPeer(attrs, p.Addr.String())
		}
	} else {
		attrs = o.appendTarget(attrs, c.Target)
	}
	attrs = appendFlag(attrs, KeyStream, c.Stream)
	attrs = appendFlag(attrs, KeyOneway, c.Oneway)
	return appendFlag(attrs, KeyForward, c.Forward)
}

// start starts the span of a call.
func (o *Exporter) start(ctx context.Context, c *anser.CallInfo, began time.Time, attrs []attribute.KeyValue) (context.Context, trace.Span) {
	opts := append(make([]trace.SpanStartOption, 0, 4), trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	if c.Server {
		opts[1] = trace.WithSpanKind(trace.SpanKindServer)
	}
	parent := parentContext(ctx, &c.Parent)
	switch {
	case c.Server && c.Oneway: // the caller does not wait, so the call is not part of its time
		if parent.IsValid() {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: parent}))
		}
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	case parent.IsValid():
		ctx = trace.ContextWithSpanContext(ctx, parent)
	}
	w := &wish{ids: c.Trace}
	ctx, span := o.tracer.Start(context.WithValue(ctx, wishKey{}, w), MethodOf(c.Method), opts...)
	w.granted = true
	return ctx, span
}

// parentContext returns the parent of a span, with the state of its trace.
func parentContext(ctx context.Context, parent *anser.Trace) trace.SpanContext {
	s := trace.SpanContextFromContext(ctx)
	if s.SpanID() == trace.SpanID(parent.SpanID) && s.TraceID() == trace.TraceID(parent.TraceID) {
		return s
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: parent.TraceID, SpanID: parent.SpanID, TraceFlags: trace.TraceFlags(parent.Flags),
		TraceState: stateOf(ctx), Remote: true,
	})
}

func appendFlag(attrs []attribute.KeyValue, key attribute.Key, set bool) []attribute.KeyValue {
	if set {
		attrs = append(attrs, key.Bool(true))
	}
	return attrs
}

// finish ends the span of a call that has ended.
func (o *Exporter) finish(span trace.Span, c *anser.CallInfo) {
	ended := time.Now()
	room := rooms.Get().(*[]attribute.KeyValue)
	attrs := appendEnd((*room)[:0], c)
	span.SetAttributes(attrs...)
	giveRoom(room, attrs)
	o.end(span, c, ended)
}

// end ends a span that has all its attributes.
func (o *Exporter) end(span trace.Span, c *anser.CallInfo, ended time.Time) {
	if code := anser.CodeOf(c.Err); isError(code, c.Server) {
		span.SetStatus(codes.Error, code.String())
	}
	addAttempts(span, c, ended)
	span.End(trace.WithTimestamp(ended))
}

// appendEnd appends the attributes that are known when a call has ended.
func appendEnd(attrs []attribute.KeyValue, c *anser.CallInfo) []attribute.KeyValue {
	code := anser.CodeOf(c.Err)
	attrs = append(attrs, KeyStatus.String(StatusOf(code)))
	if isError(code, c.Server) {
		attrs = append(attrs, KeyErrorType.String(StatusOf(code)))
	}
	if c.Err != nil {
		attrs = append(attrs, KeyOutcome.String(anser.OutcomeOf(c.Err).String()))
	}
	if c.Attempt > 0 || !c.Server {
		attrs = append(attrs, KeyAttempt.Int(c.Attempt))
	}
	attrs = appendPeer(attrs, c.Address)
	attrs = appendPick(attrs, c)
	attrs = appendFlag(attrs, KeyReplayed, c.Replayed)
	if c.Server {
		attrs = append(attrs, KeyQueue.Float64(c.Queue.Seconds()))
		if c.Handle > 0 { // a unary call that ran
			attrs = append(attrs, KeyDecode.Float64(c.Decode.Seconds()), KeyHandle.Float64(c.Handle.Seconds()), KeyEncode.Float64(c.Encode.Seconds()))
		}
		attrs = appendSize(attrs, KeyRequest, c.RequestBytes)
		attrs = appendSize(attrs, KeyReply, c.ReplyBytes)
	}
	return attrs
}

// appendPick appends why a client's last attempt went to its instance.
func appendPick(attrs []attribute.KeyValue, c *anser.CallInfo) []attribute.KeyValue {
	if c.Server || c.Address == "" {
		return attrs
	}
	attrs = append(attrs, KeyReason.String(c.Pick.Reason.String()))
	if c.Pick.Balancer != "" {
		attrs = append(attrs, KeyBalancer.String(clean(c.Pick.Balancer)))
	}
	if c.Pick.Route != "" {
		attrs = append(attrs, KeyRoute.String(clean(c.Pick.Route)))
	}
	return attrs
}

func appendSize(attrs []attribute.KeyValue, key attribute.Key, n int) []attribute.KeyValue {
	if n > 0 {
		attrs = append(attrs, key.Int(n))
	}
	return attrs
}

// addAttempts adds an event for each attempt of a call with more than one, at the time when the
// attempt ended.
func addAttempts(span trace.Span, c *anser.CallInfo, ended time.Time) {
	if len(c.Attempts) == 0 {
		return
	}
	at := ended.Add(-c.Duration)
	for i := range c.Attempts {
		a := &c.Attempts[i]
		at = at.Add(a.Duration)
		attrs := append(make([]attribute.KeyValue, 0, 8), KeyAttempt.Int(i), KeyStatus.String(StatusOf(a.Code)), KeyOutcome.String(a.Outcome.String()))
		attrs = append(appendPeer(attrs, a.Address), KeyReason.String(a.Reason.String()), KeyTook.Float64(a.Duration.Seconds()))
		if a.Pause > 0 {
			attrs = append(attrs, KeyBackoff.Float64(a.Pause.Seconds()))
		}
		span.AddEvent(AttemptEvent, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
		at = at.Add(a.Pause)
	}
	if c.Err == nil {
		attrs := append(make([]attribute.KeyValue, 0, 8), KeyAttempt.Int(len(c.Attempts)), KeyStatus.String(StatusOf(anser.OK)))
		attrs = append(appendPeer(attrs, c.Address), KeyReason.String(c.Pick.Reason.String()), KeyTook.Float64(max(ended.Sub(at), 0).Seconds()))
		span.AddEvent(AttemptEvent, trace.WithTimestamp(ended), trace.WithAttributes(attrs...))
	}
}

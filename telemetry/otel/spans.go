package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/anser-rpc/anser"
)

// liveKey is the key of the context of a recorded call for its span. Observers and handlers may
// have put other spans into the context in between.
type liveKey struct{}

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
	ctx, span := o.start(ctx, c, time.Now().Add(-c.Queue))
	ctx = context.WithValue(ctx, liveKey{}, span)
	// The ids of the span are the exporter's, unless its provider was made without the option IDs.
	s := span.SpanContext()
	ctx = anser.WithTrace(ctx, anser.Trace{TraceID: s.TraceID(), SpanID: s.SpanID(), Flags: byte(s.TraceFlags())})
	if !c.Server {
		ctx = send(ctx)
	}
	return ctx
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
	if span, ok := ctx.Value(liveKey{}).(trace.Span); ok && c.Trace.Flags&sampled != 0 {
		o.finish(span, c)
	} else if c.Trace.Flags&sampled == 0 || o.deserves(c) {
		ctx = o.recordLate(ctx, &own) // which has ids of its own if a server refused the call
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
	if !isTrace(&c.Trace) { // a server refused the call
		c.Parent, _ = anser.TraceFrom(ctx)
		c.Trace, c.Parent = o.trace(ctx, c)
	}
	c.Trace.Flags |= sampled
	began := time.Now().Add(-c.Duration)
	_, span := o.start(ctx, c, began)
	span.SetAttributes(KeyTail.Bool(true))
	o.finish(span, c)
	s := span.SpanContext()
	return anser.WithTrace(ctx, anser.Trace{TraceID: s.TraceID(), SpanID: s.SpanID(), Flags: byte(s.TraceFlags())})
}

// start starts the span of a call.
func (o *Exporter) start(ctx context.Context, c *anser.CallInfo, began time.Time) (context.Context, trace.Span) {
	method := MethodOf(c.Method)
	attrs := make([]attribute.KeyValue, 0, 8)
	attrs = append(attrs, KeySystem.String(system), KeyMethod.String(method))
	opts := []trace.SpanStartOption{trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindClient)}
	if c.Server {
		opts[1] = trace.WithSpanKind(trace.SpanKindServer)
		if p, ok := anser.PeerFrom(ctx); ok && p.Addr != nil {
			attrs = appendPeer(attrs, p.Addr.String())
		}
	} else {
		attrs = o.appendTarget(attrs, c.Target)
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
	attrs = appendFlag(attrs, KeyStream, c.Stream)
	attrs = appendFlag(attrs, KeyOneway, c.Oneway)
	attrs = appendFlag(attrs, KeyForward, c.Forward)
	w := &wish{ids: c.Trace}
	ctx, span := o.tracer.Start(context.WithValue(ctx, wishKey{}, w), method, append(opts, trace.WithAttributes(attrs...))...)
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
	code := anser.CodeOf(c.Err)
	attrs := make([]attribute.KeyValue, 0, 16)
	attrs = append(attrs, KeyStatus.String(StatusOf(code)))
	if isError(code, c.Server) {
		attrs = append(attrs, KeyErrorType.String(StatusOf(code)))
		span.SetStatus(codes.Error, code.String())
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
	span.SetAttributes(attrs...)
	addAttempts(span, c, ended)
	span.End(trace.WithTimestamp(ended))
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

package otel

import (
	"context"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/anser-rpc/anser"
)

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
	if from := o.originOf(); from != nil {
		ctx = o.beginDirect(ctx, from, c)
	} else {
		var span trace.Span
		ctx, span = o.begin(ctx, c, c.Began())
		// The ids of the span are the exporter's, unless its provider was made without the option
		// IDs.
		ctx = &live{Context: anser.WithTrace(ctx, idsOf(span)), o: o, id: c.Trace.SpanID, made: span}
	}
	if !c.Server {
		ctx = send(ctx)
	}
	return ctx
}

func idsOf(span trace.Span) anser.Trace {
	s := span.SpanContext()
	return anser.Trace{TraceID: s.TraceID(), SpanID: s.SpanID(), Flags: byte(s.TraceFlags())}
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
// learns of the call with the ids of the span, for its exemplars.
func (o *Exporter) callEnded(ctx context.Context, c *anser.CallInfo) {
	if c.Trace.Flags&sampled == 0 && !o.deserves(c) {
		o.measures.CallEnded(ctx, c)
		return
	}
	o.endSpan(ctx, c)
}

//go:noinline
func (o *Exporter) endSpan(ctx context.Context, c *anser.CallInfo) {
	l, _ := ctx.Value(liveKey{o}).(*live)
	if l == nil || l.id != c.Trace.SpanID {
		o.recordLate(ctx, c)
		return
	}
	if span := l.end(c); span != nil {
		o.finish(span, c)
		o.count(ctx, c, idsOf(span))
		return
	}
	o.measures.CallEnded(ctx, &l.record.call)
	l.record.deliver()
}

// count lets the meter learn of a call with the ids of its span.
func (o *Exporter) count(ctx context.Context, c *anser.CallInfo, ids anser.Trace) {
	own := *c
	own.Trace = ids
	o.measures.CallEnded(ctx, &own)
}

// deserves reports whether a call that has ended without a span gets one.
func (o *Exporter) deserves(c *anser.CallInfo) bool {
	if o.slow == 0 || c.Err == nil && (c.Duration < o.slow || c.Stream) {
		return false
	}
	return o.tail.admits(time.Now())
}

// recordLate records the span of a call that has ended.
func (o *Exporter) recordLate(ctx context.Context, c *anser.CallInfo) {
	if !isTrace(&c.Trace) { // a server refused the call, or had no memory for its trace
		var t anser.TraceChoice
		t.Parent, _ = anser.TraceFrom(ctx)
		o.trace(ctx, anser.CallKind{Server: c.Server, Method: c.Method, Target: c.Target, Stream: c.Stream, Oneway: c.Oneway}, &t)
		own := *c
		own.Trace, own.Parent = t.Own, t.Parent
		c = &own
	}
	if from := o.originOf(); from != nil {
		s := o.newDirect(ctx, from, c, true)
		o.measures.CallEnded(ctx, &s.call)
		s.deliver()
		return
	}
	o.count(ctx, c, o.makeLate(ctx, c))
}

// makeLate has the provider make the span of a call that has ended, and returns the span's ids.
func (o *Exporter) makeLate(ctx context.Context, c *anser.CallInfo) anser.Trace {
	room := rooms.Get().(*[]attribute.KeyValue)
	attrs := o.appendBegin((*room)[:0], c, peerOf(ctx, c))
	attrs = appendFlag(attrs, KeyTail, c.Trace.Flags&sampled == 0)
	attrs = appendEnd(attrs, c)
	began := c.Began()
	_, span := o.start(ctx, c, began, attrs)
	giveRoom(room, attrs)
	o.end(span, c, began.Add(c.Duration))
	return idsOf(span)
}

// rooms are for the attributes of a span, which the SDK copies.
var rooms = sync.Pool{New: func() any { return new(make([]attribute.KeyValue, 0, maxAttributes)) }}

// maxAttributes is the number of attributes for which a span has room at first.
const maxAttributes = 24

func giveRoom(room *[]attribute.KeyValue, attrs []attribute.KeyValue) {
	clear(attrs)
	*room = attrs
	rooms.Put(room)
}

// begin starts the span of a call that begins.
func (o *Exporter) begin(ctx context.Context, c *anser.CallInfo, began time.Time) (context.Context, trace.Span) {
	room := rooms.Get().(*[]attribute.KeyValue)
	attrs := o.appendBegin((*room)[:0], c, peerOf(ctx, c))
	defer giveRoom(room, attrs)
	return o.start(ctx, c, began, attrs)
}

// peerOf returns the address of the caller of a server, or nil.
func peerOf(ctx context.Context, c *anser.CallInfo) net.Addr {
	if !c.Server {
		return nil
	}
	p, _ := anser.PeerFrom(ctx)
	return p.Addr
}

// appendBegin appends the attributes that are known when a call begins.
func (o *Exporter) appendBegin(attrs []attribute.KeyValue, c *anser.CallInfo, peer net.Addr) []attribute.KeyValue {
	attrs = append(attrs, KeySystem.String(system), KeyMethod.String(MethodOf(c.Method)))
	if !c.Server {
		attrs = o.appendTarget(attrs, c.Target)
	} else if peer != nil {
		attrs = appendPeer(attrs, peer.String())
	}
	attrs = appendFlag(attrs, KeyStream, c.Stream)
	attrs = appendFlag(attrs, KeyOneway, c.Oneway)
	return appendFlag(attrs, KeyForward, c.Forward)
}

// isDetached reports whether the span of a call begins a trace, with a link to the caller: the
// caller does not wait for the call, which is not part of its time.
func isDetached(c *anser.CallInfo) bool { return c.Server && c.Oneway }

func kindOf(c *anser.CallInfo) trace.SpanKind {
	if c.Server {
		return trace.SpanKindServer
	}
	return trace.SpanKindClient
}

// start starts the span of a call.
func (o *Exporter) start(ctx context.Context, c *anser.CallInfo, began time.Time, attrs []attribute.KeyValue) (context.Context, trace.Span) {
	opts := append(make([]trace.SpanStartOption, 0, 4), trace.WithTimestamp(began), trace.WithSpanKind(kindOf(c)), trace.WithAttributes(attrs...))
	parent := parentContext(ctx, &c.Parent)
	switch {
	case isDetached(c):
		if parent.IsValid() {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: parent}))
		}
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	case parent.IsValid(), trace.SpanFromContext(ctx) != noSpan: // the span of another exporter
		ctx = trace.ContextWithSpanContext(ctx, parent)
	}
	w := &wish{ids: c.Trace}
	ctx, span := o.tracer.Start(context.WithValue(ctx, wishKey{}, w), MethodOf(c.Method), opts...)
	w.granted = true
	o.learn(span, w)
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
	eachAttempt(c, ended, func(at time.Time, attrs []attribute.KeyValue) {
		span.AddEvent(AttemptEvent, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
	})
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

// eachAttempt calls f with the attributes of each attempt of a call with more than one, and the
// time when the attempt ended.
func eachAttempt(c *anser.CallInfo, ended time.Time, f func(at time.Time, attrs []attribute.KeyValue)) {
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
		f(at, attrs)
		at = at.Add(a.Pause)
	}
	if c.Err == nil {
		attrs := append(make([]attribute.KeyValue, 0, 8), KeyAttempt.Int(len(c.Attempts)), KeyStatus.String(StatusOf(anser.OK)))
		attrs = append(appendPeer(attrs, c.Address), KeyReason.String(c.Pick.Reason.String()), KeyTook.Float64(max(ended.Sub(at), 0).Seconds()))
		f(ended, attrs)
	}
}

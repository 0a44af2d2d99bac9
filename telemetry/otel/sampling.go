package otel

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/anser-rpc/anser"
)

const sampled = byte(trace.FlagsSampled)

// trace decides about a call: whether it is recorded, and with which ids. A call is followed if
// more is sent along with it than the ids, and on a server if it is recorded, since the handler
// finds the span in its context. At a client nothing looks for it, so it is made when the call has
// ended.
func (o *Exporter) trace(ctx context.Context, k anser.CallKind, t *anser.TraceChoice) {
	own := &t.Own
	if ctx != context.Background() {
		if span, ok := spanOf(ctx); ok {
			t.Parent = span
		}
	}
	switch parent := &t.Parent; {
	case !isTrace(parent):
		setIDs(own)
		// A handler without a trace belongs to a call that its server decided not to record.
		if inHandler := !k.Server && o.serves.Load() && isServed(ctx); !inHandler && o.chooses(own) {
			own.Flags = sampled
		}
	case k.Server && k.Oneway: // a trace of its own, with a link
		setIDs(own)
		own.Flags = parent.Flags & sampled
	default:
		own.TraceID, own.SpanID, own.Flags = parent.TraceID, newSpanID(), parent.Flags
	}
	t.Follow = k.Server && own.Flags&sampled != 0 || carriesMore(ctx, k.Server)
}

// chooses reports whether a trace that begins is among the share that is recorded. Samplers of
// OpenTelemetry with the same share choose the same traces.
func (o *Exporter) chooses(t *anser.Trace) bool {
	return binary.BigEndian.Uint64(t.TraceID[8:])>>1 < o.below
}

// noSpan is the span of a context without one.
var noSpan = trace.SpanFromContext(context.Background())

// spanOf returns the span that the context is in.
func spanOf(ctx context.Context) (t anser.Trace, ok bool) {
	span := trace.SpanFromContext(ctx)
	if span == noSpan {
		return t, false
	}
	t = idsOf(span)
	return t, isTrace(&t)
}

// isServed reports whether the context is that of a handler.
func isServed(ctx context.Context) bool {
	_, ok := anser.PeerFrom(ctx)
	return ok
}

func isTrace(t *anser.Trace) bool { return t.TraceID != [16]byte{} && t.SpanID != [8]byte{} }

// prefix is the first half of the ids of all traces that begin in this process. Samplers look at
// the second half.
var prefix = rand.Uint64()

// setIDs chooses the ids of a trace that begins and of its first span. They come from one random
// number, as every call needs them.
func setIDs(t *anser.Trace) {
	random := rand.Uint64()
	binary.BigEndian.PutUint64(t.TraceID[:8], prefix)
	binary.BigEndian.PutUint64(t.TraceID[8:], random|1) // never 0
	binary.BigEndian.PutUint64(t.SpanID[:], random*0x9e3779b97f4a7c15|1)
}

func newSpanID() (id [8]byte) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

// wish has the ids of a span while the SDK makes it. After that it is granted and means nothing:
// the context in which it is found is also that of the span's children.
type wish struct {
	ids     anser.Trace
	heard   bool // by the sampler of [Sampler]
	granted bool
}

type wishKey struct{}

// wishOf returns the wish of a context that is not granted yet, or nil.
func wishOf(ctx context.Context) *wish {
	if w, _ := ctx.Value(wishKey{}).(*wish); w != nil && !w.granted {
		return w
	}
	return nil
}

// Sampler returns the option for a provider of spans with which it records the spans of calls that
// an [Exporter] chose. Within a handler of a call that is not recorded it records no span. The rest
// follow their parent, or root if they have none; nil means all of them.
func Sampler(root sdktrace.Sampler) sdktrace.TracerProviderOption {
	if root == nil {
		root = sdktrace.AlwaysSample()
	}
	return sdktrace.WithSampler(sampler{sdktrace.ParentBased(root)})
}

type sampler struct{ rest sdktrace.Sampler }

func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	span := trace.SpanFromContext(p.ParentContext)
	if l, ok := span.(*live); ok { // for other parents the SDK counts
		l.record.children.Add(1)
	}
	parent := span.SpanContext()
	w := wishOf(p.ParentContext)
	switch {
	case w != nil:
		w.heard = true
		return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample, Tracestate: parent.TraceState()}
	case !parent.IsValid() && isServed(p.ParentContext):
		if t, _ := anser.TraceFrom(p.ParentContext); t.Flags&sampled == 0 {
			return sdktrace.SamplingResult{Decision: sdktrace.Drop}
		}
	}
	return s.rest.ShouldSample(p)
}

func (s sampler) Description() string { return "Anser{" + s.rest.Description() + "}" }

// IDs returns the option for a provider of spans with which the span of a call has the ids that
// were sent along with the call. Without it the spans that [Tail] records are in the right trace,
// but not below the right span, since the SDK invents their ids.
func IDs() sdktrace.TracerProviderOption { return sdktrace.WithIDGenerator(generator{}) }

type generator struct{}

func (generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if w := wishOf(ctx); w != nil {
		return w.ids.TraceID, w.ids.SpanID
	}
	var t anser.Trace
	setIDs(&t)
	return t.TraceID, t.SpanID
}

func (generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if w := wishOf(ctx); w != nil {
		return w.ids.SpanID
	}
	return newSpanID()
}

package anser

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/wire"
)

// Metadata is sent along with a message: one value per key. Keys are case-insensitive and arrive in
// lower case; they consist of a-z 0-9 - _ and the full stop. The value of a key that ends in "-bin"
// may be any bytes, every other value is one line of UTF-8 text. The limits are 128 keys and 64
// KiB.
//
// Metadata goes to the callee and no further, except for keys that begin with [FlowPrefix]. See
// docs/metadata.md.
type Metadata map[string]string

// FlowPrefix begins the keys of metadata that is propagated: a call that a handler makes, with its
// context or one derived from it, also carries the handler's own metadata with such keys, and so on
// along the chain of calls. [WithMetadata] in between sets another value; an empty value means
// none.
const FlowPrefix = "flow-"

// outgoing returns the metadata that calls made with ctx carry, or nil.
func outgoing(ctx context.Context) Metadata {
	if ctx == nil {
		return nil
	}
	md, _ := ctx.Value(outgoingKey{}).(Metadata)
	if c := servedFrom(ctx); c != nil {
		if block := c.inheritedMetadata(); block != nil {
			md = md.withFlow(metadataOf(block))
		}
	}
	return md
}

// withFlow adds the keys of md that are propagated, unless m has them.
func (m Metadata) withFlow(md Metadata) Metadata {
	merged := m
	for k, v := range md {
		if _, ok := m[k]; ok || !strings.HasPrefix(k, FlowPrefix) {
			continue
		}
		if len(merged) == len(m) { // the map in the context must not change
			merged = make(Metadata, len(m)+1)
			maps.Copy(merged, m)
		}
		merged[k] = v
	}
	return merged
}

// Get returns the value of the key, whatever its case.
func (m Metadata) Get(key string) string { return m[strings.ToLower(key)] }

// Set stores the value under the key in lower case.
func (m Metadata) Set(key, value string) { m[strings.ToLower(key)] = value }

type outgoingKey struct{}

// WithMetadata returns a context whose calls carry md, in addition to what ctx already carries; md
// wins if both have a key. md is copied. Of a nil context it returns nil, with which a call fails.
func WithMetadata(ctx context.Context, md Metadata) context.Context {
	if ctx == nil {
		return nil
	}
	old, _ := ctx.Value(outgoingKey{}).(Metadata)
	merged := make(Metadata, len(old)+len(md))
	maps.Copy(merged, old)
	for k, v := range md {
		merged.Set(k, v)
	}
	return context.WithValue(ctx, outgoingKey{}, merged)
}

// OutgoingMetadata returns the metadata that WithMetadata put into ctx, or nil. The caller owns the
// result.
func OutgoingMetadata(ctx context.Context) Metadata {
	if ctx == nil {
		return nil
	}
	md, _ := ctx.Value(outgoingKey{}).(Metadata)
	return maps.Clone(md)
}

// OutgoingValue returns the value that calls made with ctx carry under the key, which is in lower
// case, or "". That includes metadata propagated from the handler that ctx belongs to.
func OutgoingValue(ctx context.Context, key string) string { return outgoing(ctx)[key] }

// maxMetadata is the longest block that every server accepts; see docs/protocol.md §4.
const maxMetadata = 64 << 10

// encodeMetadata returns md as a block, followed by own pairs of the protocol, or nil if there are
// none.
func encodeMetadata(md Metadata, own ...wire.Pair) ([]byte, error) {
	n := len(md) + len(own)
	if n == 0 {
		return nil, nil
	}
	if n > wire.MaxPairs {
		return nil, failure(ResourceExhausted, NotSent, PhaseEncode, nil, "metadata with %d keys is over the limit of %d: send fewer", n, wire.MaxPairs)
	}
	pairs := make([]wire.Pair, 0, n)
	for _, k := range slices.Sorted(maps.Keys(md)) {
		p := wire.Pair{Key: strings.ToLower(k), Value: md[k]}
		if err := wire.CheckPair(p); err != nil {
			return nil, failure(InvalidArgument, NotSent, PhaseEncode, err, "%v", err)
		}
		pairs = append(pairs, p)
	}
	block := wire.AppendMetadata(nil, append(pairs, own...))
	if len(block) > maxMetadata {
		return nil, failure(ResourceExhausted, NotSent, PhaseEncode, nil, "metadata of %d bytes is over the limit of %d: send less, or send it in the message", len(block), maxMetadata)
	}
	return block, nil
}

// metadataOf decodes a block that was validated before.
func metadataOf(block []byte) Metadata {
	pairs, _, err := wire.ParseRequestMetadata(block, uint64(len(block)))
	if err != nil || len(pairs) == 0 {
		return nil
	}
	md := make(Metadata, len(pairs))
	for _, p := range pairs {
		md[p.Key] = p.Value
	}
	return md
}

// Trace is a trace context with the fields of W3C Trace Context. It is sent with every call that a
// handler makes if the handler's own call had one.
type Trace = wire.Trace

type traceKey struct{}

// WithTrace returns a context whose calls carry t. A zero trace id or span id means no trace. Of a
// nil context it returns nil, with which a call fails.
func WithTrace(ctx context.Context, t Trace) context.Context {
	if ctx == nil {
		return nil
	}
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceFrom returns the trace context that WithTrace put into ctx, or that arrived with the call
// that ctx belongs to.
func TraceFrom(ctx context.Context) (Trace, bool) {
	if ctx == nil || ctx == context.Background() {
		return Trace{}, false
	}
	if t, ok := ctx.Value(traceKey{}).(Trace); ok {
		return t, isTrace(&t)
	}
	if c := servedFrom(ctx); c != nil {
		if t := c.inheritedTrace(); t != nil {
			return *t, true
		}
	}
	return Trace{}, false
}

// isTrace reports whether t is a trace, which has two ids.
func isTrace(t *Trace) bool { return t.TraceID != [16]byte{} && t.SpanID != [8]byte{} }

// Priority says which calls an overloaded server sheds first. It is propagated along the chain of
// calls.
type Priority uint8

// The priorities, in the order in which they are shed.
const (
	Sheddable Priority = iota
	Low
	Normal // the default
	Critical
)

type priorityKey struct{}

// WithPriority returns a context whose calls have the priority p. Of a nil context it returns nil,
// with which a call fails.
func WithPriority(ctx context.Context, p Priority) context.Context {
	if ctx == nil {
		return nil
	}
	return context.WithValue(ctx, priorityKey{}, min(p, Critical))
}

// PriorityFrom returns the priority of calls made with ctx: the one that WithPriority set,
// otherwise that of the call that ctx belongs to, otherwise Normal.
func PriorityFrom(ctx context.Context) Priority {
	if ctx == nil {
		return Normal
	}
	if p, ok := ctx.Value(priorityKey{}).(Priority); ok {
		return p
	}
	if c := servedFrom(ctx); c != nil {
		return c.level()
	}
	return Normal
}

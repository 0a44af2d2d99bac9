package otel

import (
	"context"
	"encoding/hex"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/anser-rpc/anser"
)

// Logs returns a handler of package slog that adds trace_id and span_id to the records that are
// logged with the context of a trace, outside of all groups, and passes them to next. The ids are
// those of the span in the context, or else of the trace context that came with the handler's call,
// recorded or not. For a bridge to the log SDK of OpenTelemetry use [BridgedLogs]: its records have
// fields of their own for the ids, and would have them twice.
func Logs(next slog.Handler) slog.Handler { return logs{next: next, plain: next} }

type logs struct {
	next  slog.Handler
	plain slog.Handler // as next was before the first group
	since []func(slog.Handler) slog.Handler
}

func (l logs) Enabled(ctx context.Context, level slog.Level) bool { return l.next.Enabled(ctx, level) }

func (l logs) Handle(ctx context.Context, r slog.Record) error {
	t, ok := spanOf(ctx)
	if !ok {
		if t, ok = anser.TraceFrom(ctx); !ok {
			return l.next.Handle(ctx, r)
		}
	}
	ids := []slog.Attr{slog.String("trace_id", hex.EncodeToString(t.TraceID[:])), slog.String("span_id", hex.EncodeToString(t.SpanID[:]))}
	if len(l.since) == 0 {
		r = r.Clone()
		r.AddAttrs(ids...)
		return l.next.Handle(ctx, r)
	}
	next := l.plain.WithAttrs(ids)
	for _, with := range l.since {
		next = with(next)
	}
	return next.Handle(ctx, r)
}

func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return l.with(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) }, len(l.since) > 0)
}

func (l logs) WithGroup(name string) slog.Handler {
	if name == "" {
		return l
	}
	return l.with(func(h slog.Handler) slog.Handler { return h.WithGroup(name) }, true)
}

// with returns the handler with what f adds, within a group or not.
func (l logs) with(f func(slog.Handler) slog.Handler, grouped bool) slog.Handler {
	l.next = f(l.next)
	if !grouped {
		l.plain = l.next
		return l
	}
	l.since = append(slices.Clip(l.since), f)
	return l
}

// BridgedLogs returns a handler of package slog that passes records on to next, which is a bridge
// to the log SDK of OpenTelemetry such as package otelslog. The bridge gives a record the ids of
// the span in its context. BridgedLogs gives it the trace context that came with the handler's call
// in place of a span, if that call is not recorded, so that the records have the ids of [Logs].
func BridgedLogs(next slog.Handler) slog.Handler { return bridged{next} }

type bridged struct{ slog.Handler }

func (b bridged) Handle(ctx context.Context, r slog.Record) error {
	if _, ok := spanOf(ctx); !ok {
		if t, ok := anser.TraceFrom(ctx); ok {
			ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: t.TraceID, SpanID: t.SpanID, TraceFlags: trace.TraceFlags(t.Flags), TraceState: stateOf(ctx),
			}))
		}
	}
	return b.Handler.Handle(ctx, r)
}

func (b bridged) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bridged{b.Handler.WithAttrs(attrs)}
}

func (b bridged) WithGroup(name string) slog.Handler { return bridged{b.Handler.WithGroup(name)} }

package accesslog

import (
	"context"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/semconv"
)

// Conventions names the attributes as the semantic conventions of OpenTelemetry for RPC do; [New]
// has the list. Without it lines have the names that they always had.
func Conventions() Option {
	return func(o *options) error {
		o.standard = true
		return nil
	}
}

// conventional returns the attributes of a line with [Conventions].
func (o *options) conventional(ctx context.Context, inv *anser.Invocation, method string, err error, took time.Duration, outcome anser.Outcome) []slog.Attr {
	status := semconv.Status(uint8(anser.CodeOf(err)))
	attrs := append(make([]slog.Attr, 0, 15), slog.String("rpc.system.name", "anser"), slog.String("rpc.side", sideOf(inv)), slog.String("rpc.method", semconv.Method(method)))
	peer, attempt := where(ctx, inv, err)
	if peer != "" {
		address, port := semconv.Address(peer)
		attrs = append(attrs, slog.String("network.peer.address", address))
		if port != 0 {
			attrs = append(attrs, slog.Int("network.peer.port", port))
		}
	}
	attrs = append(attrs, slog.String("rpc.status_code", status))
	if err != nil {
		attrs = append(attrs, slog.String("error.type", status), slog.String("anser.outcome", outcome.String()))
	}
	attrs = append(attrs, slog.Float64("rpc.call.duration", took.Seconds()), slog.Int("anser.attempt", attempt))
	if t, ok := anser.TraceFrom(ctx); ok {
		attrs = append(attrs, slog.String("trace_id", hex.EncodeToString(t.TraceID[:])), slog.String("span_id", hex.EncodeToString(t.SpanID[:])))
	}
	if inv.Oneway {
		attrs = append(attrs, slog.Bool("anser.oneway", true))
	}
	if took >= o.slow {
		attrs = append(attrs, slog.Bool("anser.slow", true))
	}
	if err != nil && o.messages {
		attrs = append(attrs, slog.String("error.message", messageOf(err)))
	}
	return attrs
}

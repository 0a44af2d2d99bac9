package otel_test

import (
	"context"
	"net"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// drop is an exporter of spans that drops them.
type drop struct{}

func (drop) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (drop) Shutdown(context.Context) error                             { return nil }

// BenchmarkCalls makes calls over loopback from 1,000 callers: without an observer, measured, and
// with traces besides, of which the share is recorded, at last with spans of the SDK.
func BenchmarkCalls(b *testing.B) {
	traced := func(share float64, more ...otel.Option) anser.Option {
		spans := sdktrace.NewBatchSpanProcessor(drop{})
		p := sdktrace.NewTracerProvider(otel.Sampler(nil), otel.IDs(), sdktrace.WithSpanProcessor(spans))
		b.Cleanup(func() { p.Shutdown(context.Background()) })
		o, err := otel.New(append([]otel.Option{otel.Traces(p), otel.Direct(spans), otel.Ratio(share), otel.Tail(time.Second)}, more...)...)
		if err != nil {
			b.Fatal(err)
		}
		return o.Option()
	}
	for _, tt := range []struct {
		name string
		opt  anser.Option
	}{{"without", silent}, {"measured", telemetry.New().Option()}, {"traced0", traced(0)}, {"traced1", traced(0.01)}, {"SDK1", traced(0.01, otel.Direct())}} {
		b.Run(tt.name, func(b *testing.B) {
			s := anser.NewServer(silent, tt.opt)
			anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- s.Serve(l) }()
			defer func() {
				s.Close()
				<-served
			}()
			c, err := anser.Dial(l.Addr().String(), silent, tt.opt)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.SetParallelism(500)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				ctx, in, out := context.Background(), make([]byte, 64), make([]byte, 0, 64)
				for pb.Next() {
					if err := c.Call(ctx, "Echo.Say", &in, &out); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

package anser_test

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// transports are what the benchmarks run over, client and server in one process.
var transports = map[string]func(b *testing.B, s *anser.Server) *anser.Client{
	"tcp": func(b *testing.B, s *anser.Server) *anser.Client {
		l := listen(b)
		run(b, s, l)
		return dial(b, l.Addr().String())
	},
	"memory": func(b *testing.B, s *anser.Server) *anser.Client {
		network := new(ansertest.Network)
		run(b, s, network.Listen("a:1"))
		return dial(b, "a:1", anser.Dialer(network.Dial))
	},
}

// BenchmarkCall makes unary calls: 64 raw bytes, and the message of 581 bytes of the workload that Go's
// RPC frameworks are compared with, one call after the other and in parallel.
func BenchmarkCall(b *testing.B) {
	message := benchpb.Filled()
	payload := make([]byte, 64)
	bodies := []struct {
		name string
		call func(ctx context.Context, c *anser.Client) error
	}{
		{"raw64", func(ctx context.Context, c *anser.Client) error {
			_, err := anser.Call[[]byte](ctx, c, "Echo.Say", &payload)
			return err
		}},
		{"message581", func(ctx context.Context, c *anser.Client) error {
			_, err := anser.Call[benchpb.BenchmarkMessage](ctx, c, "Hello.Say", message)
			return err
		}},
	}
	for _, transport := range []string{"tcp", "memory"} {
		for _, body := range bodies {
			s := anser.NewServer(silent)
			anser.Handle(s, "Echo.Say", echo)
			anser.Handle(s, "Hello.Say", func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
				ok, n := "OK", int32(100)
				in.Field1, in.Field2 = &ok, &n
				return in, nil
			})
			c := transports[transport](b, s)
			ctx := context.Background()
			b.Run(transport+"/"+body.name+"/c=1", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := body.call(ctx, c); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(transport+"/"+body.name+"/c=100", func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(50) // times GOMAXPROCS
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := body.call(ctx, c); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

package anser_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// BenchmarkLarge calls with large messages over TCP: protobuf messages with a long text, and bytes.
// Client and server are in one process, whose processor time for a call is reported: it depends
// less on what else the machine does than the time of a call.
func BenchmarkLarge(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	serveUnary(b, l, anser.MaxMessage(64<<20))
	c, err := anser.Dial(l.Addr().String(), anser.MaxMessage(64<<20))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for _, size := range []struct {
		name  string
		bytes int
	}{{"64KiB", 64 << 10}, {"1MiB", 1 << 20}} {
		message := benchpb.Filled()
		text := strings.Repeat("x", size.bytes)
		message.Field1 = &text
		b.Run("say"+size.name, func(b *testing.B) {
			large(b, 16, size.bytes, func() error {
				_, err := anser.Call[benchpb.BenchmarkMessage](context.Background(), c, "Hello.Echo", message)
				return err
			})
		})
		payload := make([]byte, size.bytes)
		b.Run("bytes"+size.name, func(b *testing.B) {
			large(b, 16, size.bytes, func() error {
				var out []byte
				return c.Call(context.Background(), "Echo.Bytes", &payload, &out)
			})
		})
	}
	payload := make([]byte, 16<<20-100)
	b.Run("bytes16MiB", func(b *testing.B) {
		large(b, 1, len(payload), func() error {
			var out []byte
			return c.Call(context.Background(), "Echo.Bytes", &payload, &out)
		})
	})
}

// large makes the calls of a benchmark with a number of callers.
func large(b *testing.B, callers, size int, call func() error) {
	b.ReportAllocs()
	b.SetBytes(int64(size))
	before := processorTime()
	var callsMade sync.WaitGroup
	for i := range callers {
		callsMade.Go(func() {
			for n := i; n < b.N; n += callers {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callsMade.Wait()
	b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

package anser_test

import (
	"context"
	"net"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// serveUnary serves an echo of bytes and the 581-byte workload on l until the benchmark ends.
func serveUnary(tb testing.TB, l net.Listener) {
	tb.Helper()
	s := anser.NewServer(silent)
	anser.Handle(s, "Echo.Bytes", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	anser.Handle(s, "Hello.Say", func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
		benchpb.Answer(in)
		return in, nil
	})
	go s.Serve(l)
	tb.Cleanup(func() { s.Close() })
}

// unary runs the calls of a benchmark over a connection of its own kind.
func unary(b *testing.B, dial func() (*anser.Client, error)) {
	c, err := dial()
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	payload := make([]byte, 64)
	calls := map[string]func() error{
		"bytes64": func() error {
			var out []byte
			return c.Call(context.Background(), "Echo.Bytes", &payload, &out)
		},
		"say581": func() error {
			_, err := anser.Call[benchpb.BenchmarkMessage](context.Background(), c, "Hello.Say", filled)
			return err
		},
	}
	for name, call := range calls {
		b.Run(name+"/alone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(100)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := call(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

var filled = benchpb.Filled()

// BenchmarkUnaryLoopback calls over TCP, client and server in one process; allocations are those of
// both sides and of the messages.
func BenchmarkUnaryLoopback(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	serveUnary(b, l)
	unary(b, func() (*anser.Client, error) { return anser.Dial(l.Addr().String()) })
}

// BenchmarkUnaryMemory calls over connections in memory.
func BenchmarkUnaryMemory(b *testing.B) {
	network := new(ansertest.Network)
	serveUnary(b, network.Listen("bench:1"))
	unary(b, func() (*anser.Client, error) { return anser.Dial("bench:1", anser.Dialer(network.Dial)) })
}

// A call of both sides together allocates no more than its messages: the request and its bytes on the
// server, the reply's bytes on the client, and a sixteenth of a slab of contexts.
func TestUnaryAllocations(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveUnary(t, l)
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	payload := make([]byte, 64)
	out := make([]byte, 0, 64)
	call := func() {
		if err := c.Call(context.Background(), "Echo.Bytes", &payload, &out); err != nil {
			t.Error(err)
		}
	}
	for range 1000 {
		call()
	}
	const messages = 2  // the handler's []byte and what it points to
	const framework = 4 // two for each side
	if n := testing.AllocsPerRun(2000, call); n > messages+framework {
		t.Errorf("%v allocations a call, want at most %d for the messages and %d for both sides", n, messages, framework)
	} else {
		t.Logf("%v allocations a call, %d of them for the messages", n, messages)
	}
}

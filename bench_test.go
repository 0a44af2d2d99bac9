package anser_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/registry"
)

// serveUnary serves an echo of bytes and the 581-byte workload on l until the benchmark ends.
func serveUnary(tb testing.TB, l net.Listener, opts ...anser.ServerOption) *anser.Server {
	tb.Helper()
	s := anser.NewServer(append(opts, silent)...)
	anser.Handle(s, "Echo.Bytes", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	anser.Handle(s, "Hello.Say", func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
		benchpb.Answer(in)
		return in, nil
	})
	anser.Handle(s, "Hello.Echo", func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
		return in, nil
	})
	go s.Serve(l)
	tb.Cleanup(func() { s.Close() })
	return s
}

// unary runs the calls of a benchmark over connections that dial makes.
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

// BenchmarkUnaryChecksums is BenchmarkUnaryLoopback with checksums on every frame.
func BenchmarkUnaryChecksums(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	serveUnary(b, l)
	unary(b, func() (*anser.Client, error) { return anser.Dial(l.Addr().String(), anser.Checksums()) })
}

// BenchmarkUnaryMemory calls over connections in memory.
func BenchmarkUnaryMemory(b *testing.B) {
	network := new(ansertest.Network)
	serveUnary(b, network.Listen("bench:1"))
	unary(b, func() (*anser.Client, error) { return anser.Dial("bench:1", anser.Dialer(network.Dial)) })
}

// A call allocates, on both sides together, no more than its messages: the request and its bytes
// on the server, the reply's bytes on the client, and a sixteenth of a slab of contexts.
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

// BenchmarkGovernance measures what the health of instances, rules and metrics cost per call,
// with three instances and enough callers to keep both sides busy. "bare" has none of them.
// "default" has breakers and ejection; "counting" makes them count, because a call of another
// method fails now and then. "rules" adds a router, "observed" a counter of attempts, and "all"
// has everything.
func BenchmarkGovernance(b *testing.B) {
	target := "tcp://"
	for i := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s := serveUnary(b, l)
		anser.Handle(s, "Echo.Broken", func(context.Context, *[]byte) (*[]byte, error) {
			return nil, anser.Errorf(anser.Internal, "broken")
		})
		if i > 0 {
			target += ","
		}
		target += l.Addr().String()
	}
	var seen atomic.Int64
	observed := anser.Observe(anser.Observer{Reply: func(context.Context, anser.MessageInfo) { seen.Add(1) }})
	router := new(testRouter)
	router.subset.Store(&anser.Route{Name: "all", Filters: []anser.Filter{{Name: "all", Keep: func(*registry.Instance) bool { return true }}}})
	for _, c := range []struct {
		name   string
		broken bool
		opts   []anser.DialOption
	}{
		{"bare", false, []anser.DialOption{anser.Breaker{Off: true}, anser.OutlierDetection{Off: true}}},
		{"default", false, nil},
		{"counting", true, nil},
		{"rules", false, []anser.DialOption{steered(router)}},
		{"observed", false, []anser.DialOption{observed}},
		{"all", true, []anser.DialOption{steered(router), observed}},
	} {
		b.Run(c.name, func(b *testing.B) {
			client, err := anser.Dial(target, c.opts...)
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			var calls atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(50)
			before := processorTime()
			b.RunParallel(func(pb *testing.PB) {
				in, out := benchpb.Filled(), new(benchpb.BenchmarkMessage)
				none, reply := []byte(nil), []byte(nil)
				for pb.Next() {
					if err := client.Call(context.Background(), "Hello.Say", in, out); err != nil {
						b.Error(err)
						return
					}
					if c.broken && calls.Add(1)%1000 == 0 {
						client.Call(context.Background(), "Echo.Broken", &none, &reply)
					}
				}
			})
			b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

package anser_test

import (
	"context"
	"net"
	"testing"

	"github.com/anser-rpc/anser"
)

// streamSize is the size of the messages of the benchmarks.
const streamSize = 1 << 10

// BenchmarkStreamOneWay sends messages of 1 KiB from a client to a handler over TCP, both in one
// process. It ends when the handler has received all. Allocations are those of both sides, messages
// included.
func BenchmarkStreamOneWay(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := anser.NewServer(silent)
	anser.HandleStream(s, "Sink.Recv", func(_ context.Context, st *anser.Stream[int, []byte]) error {
		for _, err := range st.All() {
			if err != nil {
				return err
			}
		}
		return nil
	})
	anser.HandleStream(s, "Sink.RecvInto", func(_ context.Context, st *anser.Stream[int, []byte]) error {
		var msg []byte
		for {
			if err := st.RecvInto(&msg); err != nil {
				return ended(err)
			}
		}
	})
	go s.Serve(l)
	defer s.Close()
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for _, method := range []string{"Sink.Recv", "Sink.RecvInto"} {
		b.Run(method, func(b *testing.B) {
			st, err := anser.Open[[]byte, []byte](context.Background(), c, method)
			if err != nil {
				b.Fatal(err)
			}
			msg := make([]byte, streamSize)
			b.SetBytes(streamSize)
			b.ReportAllocs()
			before := processorTime()
			for b.Loop() {
				if err := st.Send(&msg); err != nil {
					b.Fatal(err)
				}
			}
			if err := st.CloseSend(); err != nil {
				b.Fatal(err)
			}
			if _, err := st.Recv(); ended(err) != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkStreamRoundTrip sends a message of 1 KiB to a handler and back, one after the other.
func BenchmarkStreamRoundTrip(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := anser.NewServer(silent)
	anser.HandleStream(s, "Echo.Talk", talk)
	go s.Serve(l)
	defer s.Close()
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	st, err := anser.Open[[]byte, []byte](context.Background(), c, "Echo.Talk")
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	msg, back := make([]byte, streamSize), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := st.Send(&msg); err != nil {
			b.Fatal(err)
		}
		if err := st.RecvInto(&back); err != nil {
			b.Fatal(err)
		}
	}
}

package anser_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	serveUnary(b, l, anser.MaxMessage(300<<20))
	c, err := anser.Dial(l.Addr().String(), anser.MaxMessage(300<<20))
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
	bare := copyTCP(b)
	for _, size := range []struct {
		name  string
		bytes int
	}{{"1MiB", 1 << 20}, {"16MiB", 16 << 20}, {"256MiB", 256 << 20}} {
		payload := make([]byte, size.bytes)
		b.Run("one/bytes"+size.name, func(b *testing.B) {
			large(b, 1, size.bytes, func() error {
				var out []byte
				return c.Call(context.Background(), "Echo.Bytes", &payload, &out)
			})
		})
		b.Run("one/copy"+size.name, func(b *testing.B) {
			large(b, 1, size.bytes, func() error { return bare(payload) })
		})
	}
}

// copyTCP returns a function that sends bytes over TCP and receives them back, both into new
// memory: what a call with bytes cannot do without.
func copyTCP(b *testing.B) func(payload []byte) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	receive := func(nc net.Conn) ([]byte, error) {
		var head [8]byte
		if _, err := io.ReadFull(nc, head[:]); err != nil {
			return nil, err
		}
		in := make([]byte, binary.LittleEndian.Uint64(head[:]))
		_, err := io.ReadFull(nc, in)
		return in, err
	}
	send := func(nc net.Conn, out []byte) error {
		bufs := net.Buffers{binary.LittleEndian.AppendUint64(nil, uint64(len(out))), out}
		_, err := bufs.WriteTo(nc)
		return err
	}
	go func() {
		nc, err := l.Accept()
		for err == nil {
			var in []byte
			if in, err = receive(nc); err == nil {
				err = send(nc, in)
			}
		}
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { nc.Close() })
	return func(payload []byte) error {
		if err := send(nc, payload); err != nil {
			return err
		}
		out, err := receive(nc)
		if err == nil && len(out) != len(payload) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
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

// BenchmarkBesideLarge makes small calls on a connection that carries large ones, and reports how
// long they take.
func BenchmarkBesideLarge(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	serveUnary(b, l, anser.MaxMessage(64<<20))
	for _, size := range []struct {
		name    string
		bytes   int
		callers int
	}{{"64KiB", 64 << 10, 16}, {"1MiB", 1 << 20, 4}, {"16MiB", 16 << 20, 1}} {
		b.Run(size.name, func(b *testing.B) {
			c, err := anser.Dial("tcp://"+l.Addr().String(), anser.MaxMessage(64<<20), anser.Conns(1), anser.Dialer(new(net.Dialer).DialContext))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			ctx, stop := context.WithCancel(context.Background())
			var others sync.WaitGroup
			payload := make([]byte, size.bytes)
			for range size.callers {
				others.Go(func() {
					for ctx.Err() == nil {
						var out []byte
						if err := c.Call(ctx, "Echo.Bytes", &payload, &out); err != nil && ctx.Err() == nil {
							b.Error(err)
							return
						}
					}
				})
			}
			message := benchpb.Filled()
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if _, err := anser.Call[benchpb.BenchmarkMessage](ctx, c, "Hello.Echo", message); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			stop()
			others.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
		})
	}
}

package anser

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// nowhere is a connection that discards all writes.
type nowhere struct{ net.Conn }

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkShedding measures the work of a reader goroutine per call of the 581-byte workload,
// without reading and writing: if the call runs there, including the time of the handler, and if
// it is refused.
func BenchmarkShedding(b *testing.B) {
	payload, err := benchpb.Filled().MarshalVT()
	if err != nil {
		b.Fatal(err)
	}
	frame := wire.AppendRequest(nil, 1, 0, &wire.Request{Method: 1, Codec: 4, Priority: uint8(Normal), Payload: payload})
	for name, opts := range map[string][]HandleOption{
		"run":               {Inline()},
		"refuse/limit":      {MaxInFlight(1), Inline()},
		"refuse/adaptive":   {AdaptiveLimit(1, 1), MaxQueueTime(time.Hour)},
		"refuse/queue time": {MaxQueueTime(1), Inline()},
	} {
		b.Run(name, func(b *testing.B) {
			s := NewServer(Logger(slog.New(slog.DiscardHandler)))
			defer s.Close()
			err := Handle(s, "Hello.Say", func(_ context.Context, in *benchpb.BenchmarkMessage) (*benchpb.BenchmarkMessage, error) {
				benchpb.Answer(in)
				return in, nil
			}, opts...)
			if err != nil {
				b.Fatal(err)
			}
			m, _ := s.table.find("Hello.Say", false)
			c := newServerConn(s)
			if g := m.limits; g != nil { // as it is under overload
				g.inFlight.Store(g.limit)
				if q := g.queue; q != nil {
					q.TryAcquire()
					for range q.Stats().Room {
						q.Enqueue(&job{ctx: &callContext{conn: &c.calleeHalf, method: m, priority: uint8(Normal)}}, int(Normal))
					}
				}
			}
			c.conn.init(nowhere{}, &s.conns, 0)
			c.peer = wire.DefaultSettings()
			st := &reading{desk: new(desk), generation: 1, methods: []named{{method: m}}, now: mono.Now()}
			st.arrived = st.now - 1000
			h, err := wire.ParseHeader(frame)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				h.ID++
				st.out = st.out[:0]
				if _, err := c.request(st, h, frame[wire.HeaderSize:]); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if refused := m.refused.Load(); m.limits != nil && refused != int64(b.N) {
				b.Fatalf("%d of %d calls were refused", refused, b.N)
			}
		})
	}
}

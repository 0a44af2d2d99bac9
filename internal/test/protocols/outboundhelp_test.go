package protocols_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/stats"
)

// sizes adds up the bytes of messages on the wire of a grpc-go server.
type sizes struct{ n *atomic.Int64 }

func (s sizes) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (s sizes) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (s sizes) HandleConn(context.Context, stats.ConnStats)                       {}

func (s sizes) HandleRPC(_ context.Context, r stats.RPCStats) {
	switch r := r.(type) {
	case *stats.InPayload:
		s.n.Add(int64(r.WireLength))
	case *stats.OutPayload:
		s.n.Add(int64(r.WireLength))
	}
}

// connections counts the connections of a grpc-go server.
type connections struct{ n *atomic.Int32 }

func (c connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (c connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c connections) HandleRPC(context.Context, stats.RPCStats)                         {}

func (c connections) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnBegin); ok {
		c.n.Add(1)
	}
}

// proxy forwards the bytes of connections until it is silent.
type proxy struct {
	to     string
	silent atomic.Bool
	up     atomic.Int64 // bytes from clients
}

func (p *proxy) start(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	copyBytes := func(to, from net.Conn, count *atomic.Int64) {
		defer to.Close()
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			count.Add(int64(n))
			if !p.silent.Load() {
				to.Write(b[:n])
			}
		}
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", p.to)
			if err != nil {
				near.Close()
				continue
			}
			go copyBytes(near, far, new(atomic.Int64))
			go copyBytes(far, near, &p.up)
		}
	}()
	return l.Addr().String()
}

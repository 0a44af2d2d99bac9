package rpcx_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/smallnest/rpcx/client"
	"github.com/smallnest/rpcx/protocol"
	"github.com/smallnest/rpcx/share"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

// behindGateway starts a server of Anser that speaks Anser's protocol only, and a gateway in front
// of it, whose address it returns.
func behindGateway(t *testing.T, methods int, add func(*anser.Server)) (*gateway.Gateway, string) {
	t.Helper()
	r, quiet := registry.NewMemory(), slog.New(slog.DiscardHandler)
	s := anser.NewServer(anser.NoSignals(), anser.Logger(quiet), anser.Announce(r, registry.Instance{Service: "arith"}))
	add(s)
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		s.Serve(l)
		close(served)
	}()
	t.Cleanup(func() {
		s.Close()
		<-served
	})
	g, err := gateway.New(new(gateway.Config), gateway.Options{
		Registry: r, Logger: quiet, Look: 10 * time.Millisecond, Server: []anser.ServerOption{anser.NoSignals()},
	})
	if err != nil {
		t.Fatal(err)
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, front) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for known := within(t); ; time.Sleep(time.Millisecond) {
		for _, s := range g.Stats().Services {
			if len(s.Methods) == methods {
				return g, front.Addr().String()
			}
		}
		if known.Err() != nil {
			t.Fatalf("the gateway knows %+v", g.Stats().Services)
		}
	}
}

// sums has a method with several arguments.
type sums struct{}

func (sums) Add(_ context.Context, a, b int) (int, error) { return a + b, nil }

// A stock client of rpcx calls services behind a gateway in its default encoding. MessagePack goes
// on as it is, so the messages are those of a direct call.
func TestThroughGateway(t *testing.T) {
	noted := make(chan int, 1)
	g, addr := behindGateway(t, 7, func(s *anser.Server) {
		anser.Handle(s, "Arith.Mul", func(ctx context.Context, in *Args) (*Reply, error) {
			anser.SetTrailer(ctx, "tenant", anser.MetadataFrom(ctx)["tenant"])
			return &Reply{in.A * in.B}, nil
		})
		anser.Handle(s, "Arith.Note", func(_ context.Context, in *Args) (*Reply, error) {
			noted <- in.A
			return &Reply{}, nil
		})
		anser.Handle(s, "Arith.Fail", func(context.Context, *Args) (*Reply, error) { return nil, errors.New("no luck today") })
		anser.Handle(s, "Echo.All", func(_ context.Context, in *kinds) (*kinds, error) { return in, nil })
		anser.Handle(s, "Echo.Plain", func(_ context.Context, in *struct{ Text string }) (*struct{ Text string }, error) { return in, nil })
		if err := s.RegisterName("Sums", sums{}); err != nil {
			t.Error(err)
		}
		anser.Handle(s, "Echo.Number", func(_ context.Context, in *int) (*int, error) { return in, nil })
	})
	c := stock(t, addr, "Arith", nil)
	back := map[string]string{}
	ctx := context.WithValue(within(t), share.ReqMetaDataKey, map[string]string{"tenant": "blue"})
	ctx = context.WithValue(ctx, share.ResMetaDataKey, back)
	var out Reply
	if err := c.Call(ctx, "Mul", &Args{7, 8}, &out); err != nil || out.C != 56 || back["tenant"] != "blue" {
		t.Fatal(out, back, err)
	}
	if err := c.Call(within(t), "Note", &Args{A: 5}, nil); err != nil {
		t.Fatal(err)
	}
	if a := <-noted; a != 5 {
		t.Error(a)
	}
	if err := c.Call(within(t), "Fail", &Args{}, &out); err == nil || !strings.Contains(err.Error(), "no luck today") {
		t.Error(err)
	}
	callKinds(t, addr)
	large := strings.Repeat("anser ", 1000)
	for _, kind := range []protocol.SerializeType{protocol.MsgPack, protocol.JSON} {
		for _, packed := range []protocol.CompressType{protocol.None, protocol.Gzip} {
			c := stock(t, addr, "Echo", func(o *client.Option) { o.SerializeType, o.CompressType = kind, packed })
			var out struct{ Text string }
			if err := c.Call(within(t), "Plain", &struct{ Text string }{large}, &out); err != nil || out.Text != large {
				t.Errorf("%v %v: %d bytes, %v", kind, packed, len(out.Text), err)
			}
		}
	}
	n, in := 0, 42
	if err := stock(t, addr, "Echo", nil).Call(within(t), "Number", &in, &n); err != nil || n != 42 {
		t.Error(n, err)
	}
	n = 0
	if err := stock(t, addr, "Sums", nil).Call(within(t), "Add", map[string]int{"arg1": 7, "arg2": 8}, &n); err != nil || n != 15 {
		t.Error("a function with one result", n, err)
	}
	if s := g.Stats(); s.Calls != 10 || s.Failed != 1 {
		t.Errorf("%+v", s)
	}
}

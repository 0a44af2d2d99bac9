package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
)

// BenchmarkCall compares calls of an instance with calls through the gateway, in each protocol. All
// of them are in this process: the difference is what the gateway costs, with the connection to it.
func BenchmarkCall(b *testing.B) {
	quiet := slog.New(slog.DiscardHandler)
	r := registry.NewMemory()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := anser.NewServer(anser.NoSignals(), protocols.All(), anser.Logger(quiet), anser.Announce(r, registry.Instance{Service: "arith"}))
	arith(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		s.Close()
		<-served
	}()
	g, err := gateway.New(new(gateway.Config), gateway.Options{Registry: r, Logger: quiet, Server: []anser.ServerOption{anser.NoSignals()}})
	if err != nil {
		b.Fatal(err)
	}
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, door) }()
	defer func() {
		stop()
		<-ended
	}()
	for len(g.Stats().Services) == 0 || len(g.Stats().Services[0].Methods) == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, to := range []struct{ name, addr string }{{"direct", l.Addr().String()}, {"gateway", door.Addr().String()}} {
		for name, call := range map[string]func(b *testing.B, addr string) func() error{"anser": overAnser, "grpc": overGRPC, "json": overJSON} {
			b.Run(name+"/"+to.name, func(b *testing.B) {
				do := call(b, to.addr)
				b.ReportAllocs()
				b.SetParallelism(8)
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						if err := do(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

func benchClient(b *testing.B, addr string, opts ...anser.DialOption) *anser.Client {
	c, err := anser.Dial(addr, append(opts, anser.NoSnapshot(), anser.Logger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

func overAnser(b *testing.B, addr string) func() error {
	c := benchClient(b, addr)
	return func() error {
		_, err := anser.Call[reply](b.Context(), c, "Arith.Mul", &args{7, 8})
		return err
	}
}

func overGRPC(b *testing.B, addr string) func() error {
	c := benchClient(b, "grpc://"+addr, protocols.GRPC())
	as := anser.Codec(codec.Forwarding(codec.ProtobufID, "protobuf"))
	return func() error {
		return c.Call(b.Context(), "Arith.Mul", &codec.Encoded{Codec: codec.ProtobufID, Data: []byte{8, 7, 16, 8}}, new(codec.Encoded), as)
	}
}

func overJSON(b *testing.B, addr string) func() error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(client.CloseIdleConnections)
	return func() error {
		resp, err := client.Post("http://"+addr+"/Arith.Mul", "application/json", strings.NewReader(`{"A":7,"B":8}`))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
}

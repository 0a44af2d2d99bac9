package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/stats"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// gRPC for Go, in settings that suit the rows: keepalive as often as its servers may be asked,
// round robin, retries of what is idempotent, calls that wait for a connection, and new
// connections soon after one was lost.
const grpcConfig = `{
	"loadBalancingConfig": [{"round_robin": {}}],
	"methodConfig": [{
		"name": [{"service": "%s", "method": "Set"}],
		"retryPolicy": {
			"maxAttempts": 5, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}]
}`

const (
	grpcPing   = 10 * time.Second // the least that a client may ask
	grpcAnswer = 3 * time.Second
)

// grpcService is the name of the service at servers of gRPC.
const grpcService = "faults.Ledger"

// grpcBackoff is that of new connections: a server is tried again at least once a second.
var grpcBackoff = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}

// grpcCodec sends entries as JSON.
type grpcCodec struct{}

// Name implements encoding.Codec.
func (grpcCodec) Name() string { return "json" }

// Marshal implements encoding.Codec.
func (grpcCodec) Marshal(v any) ([]byte, error) { return json.Marshal(v) }

// Unmarshal implements encoding.Codec.
func (grpcCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// runGRPCServer is the role of a server of gRPC.
func runGRPCServer(c config, p *parent) error {
	s, err := newServer(c)
	if err != nil {
		return err
	}
	defer s.book.Close()
	conns := new(grpcConns)
	s.conns = func() int { return int(conns.n.Load()) }
	opts := []grpc.ServerOption{
		grpc.ForceServerCodec(grpcCodec{}), grpc.StatsHandler(conns),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: grpcPing / 2}),
	}
	if c.TLS != nil {
		secure, _, err := peerTLS("grpc", c.TLS)
		if err != nil {
			return err
		}
		opts = append(opts, grpc.Creds(credentials.NewTLS(secure)))
	}
	g := grpc.NewServer(opts...)
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: grpcService, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{grpcMethod("Append", s.record), grpcMethod("Set", s.record), grpcMethod("Hold", s.hold)},
	}, nil)
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, g.GracefulStop)()
	if err := s.answerPeer(p); err != nil {
		return err
	}
	return g.Serve(l)
}

func grpcMethod(name string, do func(context.Context, *entry) (*entry, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := new(entry)
		if err := decode(in); err != nil {
			return nil, err
		}
		return do(ctx, in)
	}}
}

// grpcConns counts the connections of a server.
type grpcConns struct{ n atomic.Int64 }

// TagRPC implements stats.Handler.
func (*grpcConns) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (*grpcConns) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn implements stats.Handler.
func (*grpcConns) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (c *grpcConns) HandleConn(_ context.Context, e stats.ConnStats) {
	switch e.(type) {
	case *stats.ConnBegin:
		c.n.Add(1)
	case *stats.ConnEnd:
		c.n.Add(-1)
	}
}

// grpcAttempts counts those of a client.
type grpcAttempts struct {
	grpcConns // of no interest here
	attempts  *atomic.Int64
}

// HandleRPC implements stats.Handler.
func (a *grpcAttempts) HandleRPC(_ context.Context, e stats.RPCStats) {
	if _, ok := e.(*stats.Begin); ok {
		a.attempts.Add(1)
	}
}

// grpcCaller calls servers of gRPC.
type grpcCaller struct {
	conns   []*grpc.ClientConn // the first one for calls, all for open connections
	service string
	to      string // the value of routeKey; empty: none
	timeout time.Duration
}

func newGRPCCaller(c config, service string, attempts *atomic.Int64) (*grpcCaller, error) {
	var state resolver.State
	for _, address := range strings.Split(c.Target, ",") {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	creds := insecure.NewCredentials()
	if c.TLS != nil {
		_, secure, err := peerTLS("grpc", c.TLS)
		if err != nil {
			return nil, err
		}
		creds = credentials.NewTLS(secure)
	}
	g := &grpcCaller{service: service, to: c.Service, timeout: c.Timeout}
	for range max(1, c.Conns) {
		b := manual.NewBuilderWithScheme("faults")
		b.InitialState(state)
		conn, err := grpc.NewClient("faults:///servers",
			grpc.WithResolvers(b), grpc.WithDefaultServiceConfig(fmt.Sprintf(grpcConfig, service)), grpc.WithTransportCredentials(creds),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: grpcPing, Timeout: grpcAnswer}),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: grpcBackoff, MinConnectTimeout: grpcAnswer}),
			grpc.WithDefaultCallOptions(grpc.ForceCodec(grpcCodec{}), grpc.WaitForReady(true)),
			grpc.WithStatsHandler(&grpcAttempts{attempts: attempts}),
		)
		if err != nil {
			return nil, errors.Join(err, g.close())
		}
		g.conns = append(g.conns, conn)
	}
	return g, nil
}

func (g *grpcCaller) call(ctx context.Context, idempotent bool, in *entry) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	method := "Append"
	if idempotent {
		method = "Set"
	}
	if g.to != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, routeKey, g.to)
	}
	out := new(entry)
	return out, g.conns[0].Invoke(ctx, "/"+g.service+"/"+method, in, out)
}

// outcome proves little: gRPC does not report whether a call may have run. Its codes are the same
// as Anser's.
func (g *grpcCaller) outcome(err error) (ledger.Outcome, anser.Code) {
	return ledger.Unknown, anser.Code(grpcstatus.Code(err))
}

func (g *grpcCaller) hold(ctx context.Context, n int) (wait func() error) {
	return holdEach(n, func(i int, in *entry) error {
		err := g.conns[i%len(g.conns)].Invoke(ctx, "/"+g.service+"/Hold", in, new(entry))
		if grpcstatus.Code(err) == codes.Canceled {
			return nil
		}
		return err
	})
}

func (g *grpcCaller) close() error {
	var failed []error
	for _, conn := range g.conns {
		failed = append(failed, conn.Close())
	}
	return errors.Join(failed...)
}

// runGRPCClient is the role of a client of gRPC.
func runGRPCClient(c config, p *parent) error {
	s := new(client)
	g, err := newGRPCCaller(c, grpcService, &s.attempts)
	if err != nil {
		return err
	}
	s.caller = g
	if err := p.ready(); err != nil {
		return err
	}
	if err := p.obey(s.do); err != nil {
		return err
	}
	return g.close()
}

// introduceGRPC begins HTTP/2 on a connection, as every client of gRPC does, and answers what a
// server asks.
func introduceGRPC(nc net.Conn, answering *sync.WaitGroup) error {
	if _, err := io.WriteString(nc, http2.ClientPreface); err != nil {
		return err
	}
	f := http2.NewFramer(nc, nc)
	if err := f.WriteSettings(); err != nil {
		return err
	}
	first, err := f.ReadFrame()
	if err != nil {
		return err
	}
	if s, ok := first.(*http2.SettingsFrame); !ok || s.IsAck() {
		return fmt.Errorf("the server began with %v, not with its settings", first)
	}
	if err := f.WriteSettingsAck(); err != nil {
		return err
	}
	answering.Go(func() {
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if ping, ok := frame.(*http2.PingFrame); ok && !ping.IsAck() {
				if err := f.WritePing(true, ping.Data); err != nil {
					return
				}
			}
		}
	})
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/e2e/faults/ledger"
)

// gRPC for Go, in settings that suit the rows: keepalive as often as its servers may be asked, round robin,
// retries of what is idempotent, and calls that wait for a connection.
const grpcConfig = `{
	"loadBalancingConfig": [{"round_robin": {}}],
	"methodConfig": [{
		"name": [{"service": "faults.Ledger", "method": "Set"}],
		"retryPolicy": {
			"maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}]
}`

const (
	grpcPing   = 10 * time.Second // the least that a client may ask
	grpcAnswer = 3 * time.Second
)

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
	book, err := ledger.OpenBook(c.Dir, c.Name)
	if err != nil {
		return err
	}
	defer book.Close()
	s := &server{book: book, sleep: c.Sleep}
	handler := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := new(entry)
		if err := decode(in); err != nil {
			return nil, err
		}
		return s.record(ctx, in)
	}
	g := grpc.NewServer(grpc.ForceServerCodec(grpcCodec{}), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: grpcPing / 2}))
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: "faults.Ledger", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Append", Handler: handler}, {MethodName: "Set", Handler: handler}},
	}, nil)
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		g.GracefulStop()
	}()
	if err := p.ready(); err != nil {
		return err
	}
	go func() {
		p.obey(func(c command) (any, error) { return nil, fmt.Errorf("this server cannot %s", c.Do) })
		os.Exit(0)
	}()
	return g.Serve(l)
}

// grpcCaller calls servers of gRPC.
type grpcCaller struct {
	conn    *grpc.ClientConn
	timeout time.Duration
}

func newGRPCCaller(c config) (*grpcCaller, error) {
	b := manual.NewBuilderWithScheme("faults")
	var state resolver.State
	for _, address := range strings.Split(c.Target, ",") {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	b.InitialState(state)
	conn, err := grpc.NewClient("faults:///servers",
		grpc.WithResolvers(b), grpc.WithDefaultServiceConfig(grpcConfig),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: grpcPing, Timeout: grpcAnswer}),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(grpcCodec{}), grpc.WaitForReady(true)),
	)
	return &grpcCaller{conn, c.Timeout}, err
}

func (g *grpcCaller) call(ctx context.Context, idempotent bool, in *entry) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	method := "/faults.Ledger/Append"
	if idempotent {
		method = "/faults.Ledger/Set"
	}
	out := new(entry)
	return out, g.conn.Invoke(ctx, method, in, out)
}

// outcome knows little: gRPC does not tell whether a call may have run.
func (g *grpcCaller) outcome(err error) (ledger.Outcome, anser.Code) {
	if grpcstatus.Code(err) == codes.DeadlineExceeded {
		return ledger.Unknown, anser.DeadlineExceeded
	}
	return ledger.Unknown, anser.Unknown
}

func (g *grpcCaller) close() error { return g.conn.Close() }

// runGRPCClient is the role of a client of gRPC.
func runGRPCClient(c config, p *parent) error {
	g, err := newGRPCCaller(c)
	if err != nil {
		return err
	}
	if err := p.ready(); err != nil {
		return err
	}
	s := &client{caller: g}
	if err := p.obey(s.do); err != nil {
		return err
	}
	return g.close()
}

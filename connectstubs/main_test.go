package connectstubs_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"

	"connectrpc.com/connect/v2"
	"go.uber.org/goleak"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/connectstubs"
	pb "github.com/anser-rpc/anser/connectstubs/internal/pingpb"
	"github.com/anser-rpc/anser/connectstubs/internal/pingpb/pingpbconnect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// serve serves the handlers over TCP and returns a client.
func serve(t *testing.T, handlers *connect.Server) *anser.Client {
	t.Helper()
	return run(t, mounted(t, handlers))
}

// mounted returns a server with the handlers.
func mounted(t *testing.T, handlers *connect.Server) *anser.Server {
	t.Helper()
	s := anser.NewServer(silent)
	if err := connectstubs.Mount(s, handlers); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a server on TCP and returns a client.
func run(t *testing.T, s *anser.Server, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return runOn(t, s, l, opts...)
}

// runOn runs a server on l and returns a client.
func runOn(t *testing.T, s *anser.Server, l net.Listener, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	c, err := anser.Dial(l.Addr().String(), append(opts, silent)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// open serves p and returns a generated client, with the client of Anser that it calls through.
func open(t *testing.T, p pingpbconnect.PingServiceHandler) (pingpbconnect.PingServiceClient, *anser.Client) {
	t.Helper()
	c := serve(t, handlersOf(p))
	return newClient(c), c
}

// handlersOf returns the handlers of one service.
func handlersOf(p pingpbconnect.PingServiceHandler) *connect.Server {
	handlers := connect.NewServer()
	pingpbconnect.RegisterPingServiceHandler(handlers, p)
	return handlers
}

// numbers is the service as its contract says.
type numbers struct {
	pingpbconnect.UnimplementedPingServiceHandler
}

func (numbers) Ping(_ context.Context, in *pb.PingRequest) (*pb.PingResponse, error) {
	return &pb.PingResponse{Number: in.Number, Text: in.Text}, nil
}

func (numbers) Sum(_ context.Context, st pingpbconnect.PingServiceSumServerStream) (*pb.SumResponse, error) {
	out := new(pb.SumResponse)
	for {
		in, err := st.Receive()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out.Sum += in.Number
	}
}

func (numbers) CountUp(_ context.Context, in *pb.CountUpRequest, st pingpbconnect.PingServiceCountUpServerStream) error {
	for n := range in.Number {
		if err := st.Send(&pb.CountUpResponse{Number: n + 1}); err != nil {
			return err
		}
	}
	return nil
}

func (numbers) CumSum(_ context.Context, st pingpbconnect.PingServiceCumSumServerStream) error {
	var sum int64
	for {
		in, err := st.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		sum += in.Number
		if err := st.Send(&pb.CumSumResponse{Sum: sum}); err != nil {
			return err
		}
	}
}

// probe is the service with methods that a test sets; the others are those of numbers.
type probe struct {
	numbers
	ping    func(context.Context, *pb.PingRequest) (*pb.PingResponse, error)
	store   func(context.Context, *pb.PingRequest) (*pb.PingResponse, error)
	countUp func(context.Context, *pb.CountUpRequest, pingpbconnect.PingServiceCountUpServerStream) error
	cumSum  func(context.Context, pingpbconnect.PingServiceCumSumServerStream) error
}

func (p *probe) Ping(ctx context.Context, in *pb.PingRequest) (*pb.PingResponse, error) {
	if p.ping == nil {
		return p.numbers.Ping(ctx, in)
	}
	return p.ping(ctx, in)
}

func (p *probe) Store(ctx context.Context, in *pb.PingRequest) (*pb.PingResponse, error) {
	return p.store(ctx, in)
}

func (p *probe) CountUp(ctx context.Context, in *pb.CountUpRequest, st pingpbconnect.PingServiceCountUpServerStream) error {
	if p.countUp == nil {
		return p.numbers.CountUp(ctx, in, st)
	}
	return p.countUp(ctx, in, st)
}

func (p *probe) CumSum(ctx context.Context, st pingpbconnect.PingServiceCumSumServerStream) error {
	if p.cumSum == nil {
		return p.numbers.CumSum(ctx, st)
	}
	return p.cumSum(ctx, st)
}

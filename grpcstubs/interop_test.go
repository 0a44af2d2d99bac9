package grpcstubs_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/grpcstubs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// open serves what add adds and returns a client.
func open(t *testing.T, add func(r *grpcstubs.Registrar), opts ...anser.ServerOption) *anser.Client {
	t.Helper()
	s := anser.NewServer(append(opts, silent)...)
	add(grpcstubs.NewRegistrar(s))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	c, err := anser.Dial(l.Addr().String(), silent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Every case of gRPC's interoperability tests that needs neither Google's cloud nor a *ClientConn,
// with gRPC's own server and client, over Anser. The functions end the process when a case fails.
func TestInterop(t *testing.T) {
	conn := grpcstubs.NewConn(open(t, func(r *grpcstubs.Registrar) { pb.RegisterTestServiceServer(r, interop.NewTestServer()) }))
	client := pb.NewTestServiceClient(conn)
	for _, test := range []struct {
		name string
		run  func(context.Context, pb.TestServiceClient, ...grpc.CallOption)
	}{
		{"empty_unary", interop.DoEmptyUnaryCall},
		{"large_unary", interop.DoLargeUnaryCall},
		{"client_streaming", interop.DoClientStreaming},
		{"server_streaming", interop.DoServerStreaming},
		{"ping_pong", interop.DoPingPong},
		{"empty_stream", interop.DoEmptyStream},
		{"timeout_on_sleeping_server", interop.DoTimeoutOnSleepingServer},
		{"cancel_after_begin", interop.DoCancelAfterBegin},
		{"cancel_after_first_response", interop.DoCancelAfterFirstResponse},
		{"custom_metadata", interop.DoCustomMetadata},
		{"status_code_and_message", interop.DoStatusCodeAndMessage},
		{"special_status_message", interop.DoSpecialStatusMessage},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t.Context(), client) })
	}
	t.Run("unimplemented_service", func(t *testing.T) {
		interop.DoUnimplementedService(t.Context(), pb.NewUnimplementedServiceClient(conn))
	})
	t.Run("unimplemented_method", func(t *testing.T) {
		err := conn.Invoke(t.Context(), "/grpc.testing.TestService/UnimplementedCall", new(pb.Empty), new(pb.Empty))
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("the error is %v", err)
		}
	})
}

// probe is a server whose methods the tests set.
type probe struct {
	pb.UnimplementedTestServiceServer
	unary  func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error)
	duplex func(grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error
}

func (p *probe) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return p.unary(ctx, in)
}

func (p *probe) FullDuplexCall(st grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	return p.duplex(st)
}

func (p *probe) open(t *testing.T) (pb.TestServiceClient, *anser.Client) {
	t.Helper()
	c := open(t, func(r *grpcstubs.Registrar) { pb.RegisterTestServiceServer(r, p) })
	return pb.NewTestServiceClient(grpcstubs.NewConn(c)), c
}

func TestStatusWithDetails(t *testing.T) {
	client, _ := (&probe{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		s, err := status.New(codes.Aborted, "busy").WithDetails(durationpb.New(time.Minute))
		if err != nil {
			return nil, err
		}
		return nil, s.Err()
	}}).open(t)
	_, err := client.UnaryCall(t.Context(), new(pb.SimpleRequest))
	s := status.Convert(err)
	if s.Code() != codes.Aborted || s.Message() != "busy" || len(s.Details()) != 1 {
		t.Fatalf("the status is %v with %v", s, s.Details())
	}
	if d, ok := s.Details()[0].(*durationpb.Duration); !ok || d.AsDuration() != time.Minute {
		t.Errorf("the detail is %v", s.Details()[0])
	}
	e, ok := errors.AsType[*anser.Error](err)
	if !ok || e.Outcome != anser.Executed || !errors.Is(err, anser.Aborted) {
		t.Errorf("the error wraps %+v", e)
	}
}

func TestErrorsOfHandlers(t *testing.T) {
	for _, test := range []struct {
		err  error
		code codes.Code
		text string
	}{
		{errors.New("plain"), codes.Unknown, "plain"},
		{context.DeadlineExceeded, codes.DeadlineExceeded, "deadline"},
		{anser.Errorf(anser.NotFound, "none"), codes.NotFound, "none"},
		{status.Error(codes.DataLoss, "lost"), codes.DataLoss, "lost"},
	} {
		client, _ := (&probe{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return nil, test.err }}).open(t)
		_, err := client.UnaryCall(t.Context(), new(pb.SimpleRequest))
		if status.Code(err) != test.code || !strings.Contains(status.Convert(err).Message(), test.text) {
			t.Errorf("%v becomes %v", test.err, err)
		}
	}
}

// Several values of a key, binary values, and the order of values arrive as they were sent.
func TestMetadata(t *testing.T) {
	seen := make(chan metadata.MD, 1)
	client, _ := (&probe{unary: func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		seen <- md
		if p, ok := peer.FromContext(ctx); !ok || p.Addr == nil {
			return nil, status.Error(codes.Internal, "there is no peer")
		}
		if method, ok := grpc.Method(ctx); !ok || method != "/grpc.testing.TestService/UnaryCall" {
			return nil, status.Errorf(codes.Internal, "the method is %q", method)
		}
		if err := grpc.SetHeader(ctx, metadata.Pairs("h", "1", "h", "2", "h-bin", "\x00\xff")); err != nil {
			return nil, err
		}
		if err := grpc.SendHeader(ctx, metadata.Pairs("last", "3")); err != nil {
			return nil, err
		}
		if err := grpc.SetHeader(ctx, metadata.Pairs("late", "4")); err == nil {
			return nil, status.Error(codes.Internal, "headers can be set after they were sent")
		}
		return new(pb.SimpleResponse), grpc.SetTrailer(ctx, metadata.Pairs("t", "5", "t", "6"))
	}}).open(t)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "one", "1", "many", "a", "many", "b", "raw-bin", "\x00\x80")
	var header, trailer metadata.MD
	if _, err := client.UnaryCall(ctx, new(pb.SimpleRequest), grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
		t.Fatal(err)
	}
	md := <-seen
	for key, want := range map[string]string{"one": "1", "many": "a b", "raw-bin": "\x00\x80"} {
		if got := strings.Join(md.Get(key), " "); got != want {
			t.Errorf("the server gets %s as %q, want %q", key, got, want)
		}
	}
	if got := strings.Join(header.Get("h"), " ") + " " + strings.Join(header.Get("last"), " "); got != "1 2 3" || header.Get("h-bin")[0] != "\x00\xff" {
		t.Errorf("the headers are %v", header)
	}
	if got := strings.Join(trailer.Get("t"), " "); got != "5 6" || len(trailer) != 1 {
		t.Errorf("the trailers are %v", trailer)
	}
}

// Headers of a stream arrive before its first message, and before its end if there is none.
func TestHeadersOfStreams(t *testing.T) {
	client, _ := (&probe{duplex: func(st grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
		if _, err := st.Recv(); err != nil {
			return err
		}
		if err := st.SendHeader(metadata.Pairs("h", "1")); err != nil {
			return err
		}
		for {
			in, err := st.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if err := st.Send(&pb.StreamingOutputCallResponse{Payload: in.Payload}); err != nil {
				return err
			}
		}
	}}).open(t)
	st, err := client.FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Send(new(pb.StreamingOutputCallRequest)); err != nil {
		t.Fatal(err)
	}
	if md, err := st.Header(); err != nil || len(md.Get("h")) != 1 {
		t.Fatalf("the headers are %v, %v", md, err)
	}
	if err := st.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if out, err := st.Recv(); err != nil || string(out.Payload.Body) != "x" {
		t.Errorf("received %v, %v", out, err)
	}
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Recv(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// A message that is too large is an error of Send, and the stream goes on.
func TestLargeMessage(t *testing.T) {
	client := pb.NewTestServiceClient(grpcstubs.NewConn(open(t, func(r *grpcstubs.Registrar) {
		pb.RegisterTestServiceServer(r, interop.NewTestServer())
	})))
	st, err := client.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, 8<<20)}}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("Send: %v", err)
	}
	if err := st.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, 3)}}); err != nil {
		t.Fatal(err)
	}
	if out, err := st.CloseAndRecv(); err != nil || out.AggregatedPayloadSize != 3 {
		t.Errorf("%v, %v", out, err)
	}
}

// A client of Anser without the stubs calls the same methods, in protobuf and JSON, and sees no
// messages with headers.
func TestClientsWithoutStubs(t *testing.T) {
	_, c := (&probe{
		unary: func(_ context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			return &pb.SimpleResponse{Payload: in.Payload}, nil
		},
		duplex: func(st grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
			if err := st.SetHeader(metadata.Pairs("h", "1")); err != nil {
				return err
			}
			return st.Send(&pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: []byte("y")}})
		},
	}).open(t)
	const name = "grpc.testing.TestService."
	out, err := anser.Call[pb.SimpleResponse](t.Context(), c, name+"UnaryCall", &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte("x")}})
	if err != nil || string(out.Payload.Body) != "x" {
		t.Errorf("UnaryCall: %v, %v", out, err)
	}
	st, err := anser.Open[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse](t.Context(), c, name+"FullDuplexCall")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := st.Recv(); err != nil || string(m.Payload.Body) != "y" {
		t.Errorf("FullDuplexCall: %v, %v", m, err)
	}
	if _, err := st.Recv(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// Options either work or are refused.
func TestOptions(t *testing.T) {
	client, _ := (&probe{unary: func(_ context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		return &pb.SimpleResponse{Payload: in.Payload}, nil
	}}).open(t)
	big := &pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, 1000)}}
	var finished []error
	finish := grpc.OnFinish(func(err error) { finished = append(finished, err) })
	for _, test := range []struct {
		name string
		opt  grpc.CallOption
		code codes.Code
	}{
		{"send limit", grpc.MaxCallSendMsgSize(100), codes.ResourceExhausted},
		{"receive limit", grpc.MaxCallRecvMsgSize(100), codes.ResourceExhausted},
		{"room", grpc.MaxCallRecvMsgSize(10000), codes.OK},
		{"wait", grpc.WaitForReady(true), codes.OK},
		{"gzip", grpc.UseCompressor("gzip"), codes.Unimplemented},
		{"subtype", grpc.CallContentSubtype("json"), codes.Unimplemented},
		{"peer", grpc.Peer(new(peer.Peer)), codes.Unimplemented},
		{"credentials that need TLS", grpc.PerRPCCredentials(token(true)), codes.Unauthenticated},
		{"credentials", grpc.PerRPCCredentials(token(false)), codes.OK},
	} {
		if _, err := client.UnaryCall(t.Context(), big, test.opt, finish); status.Code(err) != test.code {
			t.Errorf("%s: %v, want %v", test.name, err, test.code)
		}
	}
	if len(finished) < 5 {
		t.Errorf("OnFinish was called %d times", len(finished))
	}
}

type token bool

func (token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "x"}, nil
}

func (t token) RequireTransportSecurity() bool { return bool(t) }

var _ credentials.PerRPCCredentials = token(true)

func TestMistakesOfServers(t *testing.T) {
	for name, add := range map[string]func(r *grpcstubs.Registrar){
		"twice": func(r *grpcstubs.Registrar) {
			pb.RegisterTestServiceServer(r, interop.NewTestServer())
			pb.RegisterTestServiceServer(r, interop.NewTestServer())
		},
		"implementation": func(r *grpcstubs.Registrar) { r.RegisterService(&pb.TestService_ServiceDesc, "text") },
		"descriptor": func(r *grpcstubs.Registrar) {
			r.RegisterService(&grpc.ServiceDesc{ServiceName: "none.None", Methods: []grpc.MethodDesc{{MethodName: "X"}}}, nil)
		},
	} {
		s := anser.NewServer(silent)
		add(grpcstubs.NewRegistrar(s))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(time.Minute, func() { s.Close() })
		if err := s.Serve(l); err == nil || errors.Is(err, anser.ErrServerClosed) || strings.Contains(err.Error(), "signature") {
			t.Errorf("%s: Serve returns %v; want the mistake", name, err)
		}
		late.Stop()
		s.Close()
	}
}

// Interceptors of gRPC see the calls.
func TestInterceptors(t *testing.T) {
	var seen []string
	conn := grpcstubs.NewConn(open(t, func(r *grpcstubs.Registrar) {
		r.Intercept(
			func(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				seen = append(seen, info.FullMethod)
				return next(ctx, in)
			},
			func(srv any, st grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
				seen = append(seen, info.FullMethod)
				return next(srv, st)
			})
		pb.RegisterTestServiceServer(r, interop.NewTestServer())
	}))
	client := pb.NewTestServiceClient(conn)
	interop.DoEmptyUnaryCall(t.Context(), client)
	interop.DoEmptyStream(t.Context(), client)
	if got := strings.Join(seen, " "); got != "/grpc.testing.TestService/EmptyCall /grpc.testing.TestService/FullDuplexCall" {
		t.Errorf("the interceptors saw %s", got)
	}
}

// The list of a client's streams says which sides send.
func TestKindsOfStreams(t *testing.T) {
	c := open(t, func(r *grpcstubs.Registrar) { pb.RegisterTestServiceServer(r, interop.NewTestServer()) })
	client := pb.NewTestServiceClient(grpcstubs.NewConn(c))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := client.StreamingInputCall(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := client.FullDuplexCall(ctx); err != nil {
		t.Fatal(err)
	}
	list, _ := c.Streams(10)
	if len(list) != 2 || !list[0].ClientStream || list[0].ServerStream || !list[1].ClientStream || !list[1].ServerStream {
		t.Errorf("the streams are %+v", list)
	}
}

package stubs_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/connectstubs"
	"github.com/anser-rpc/anser/grpcstubs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// run runs the server on TCP and returns a client.
func run(t *testing.T, s *anser.Server) *anser.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return runOn(t, s, l)
}

// runOn runs the server on l and returns a client.
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

// ofConnect runs handlers of Connect and returns a generated client of gRPC for them.
func ofConnect(t *testing.T, handlers *connect.Server) pb.TestServiceClient {
	t.Helper()
	s := anser.NewServer(silent)
	if err := connectstubs.Mount(s, handlers); err != nil {
		t.Fatal(err)
	}
	return pb.NewTestServiceClient(grpcstubs.NewConn(run(t, s)))
}

// ofGRPC runs a service of gRPC and returns a client of Connect for it.
func ofGRPC(t *testing.T, service pb.TestServiceServer) *connect.Client {
	t.Helper()
	s := anser.NewServer(silent)
	pb.RegisterTestServiceServer(grpcstubs.NewRegistrar(s), service)
	return connect.NewClient(connectstubs.NewTransport(run(t, s)))
}

// gRPC's interoperability tests, with its generated client, against handlers of Connect. The
// functions end the process when a case fails.
func TestGRPCCallsConnect(t *testing.T) {
	client := ofConnect(t, newHandlers())
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
	t.Run("unimplemented_method", func(t *testing.T) {
		if _, err := client.UnimplementedCall(t.Context(), new(pb.Empty)); status.Code(err) != codes.Unimplemented {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("several values", func(t *testing.T) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), initialKey, "b", initialKey, "a", trailingKey, "\x00\xff", trailingKey, "")
		var header, trailer metadata.MD
		if _, err := client.UnaryCall(ctx, new(pb.SimpleRequest), grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
			t.Fatal(err)
		}
		if got := header.Get(initialKey); !slices.Equal(got, []string{"b", "a"}) {
			t.Errorf("the headers are %q", header)
		}
		if got := trailer.Get(trailingKey); !slices.Equal(got, []string{"\x00\xff", ""}) {
			t.Errorf("the trailers are %q", trailer)
		}
	})
}

func TestConnectCallsGRPC(t *testing.T) {
	client := ofGRPC(t, interop.NewTestServer())
	t.Run("unary", func(t *testing.T) {
		ctx, info := connect.NewClientContext(t.Context())
		binary := connect.EncodeBinaryHeader([]byte("\x00\xff"))
		info.RequestHeader().Set(initialKey, "text")
		info.RequestHeader().Set(trailingKey, binary)
		out := new(pb.SimpleResponse)
		if err := client.CallUnary(ctx, spec("UnaryCall"), &pb.SimpleRequest{ResponseSize: 314159}, out); err != nil || len(out.GetPayload().GetBody()) != 314159 {
			t.Fatalf("%d bytes, %v", len(out.GetPayload().GetBody()), err)
		}
		if got := info.ResponseHeader().Get(initialKey); got != "text" {
			t.Errorf("the header is %q", got)
		}
		if got := info.ResponseTrailer().Get(trailingKey); got != binary {
			t.Errorf("the trailer is %q", got)
		}
	})
	t.Run("client stream", func(t *testing.T) {
		st, err := client.CallClientStream(t.Context(), spec("StreamingInputCall"))
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int32{27182, 8, 1828, 45904} {
			if err := st.Send(&pb.StreamingInputCallRequest{Payload: payload(size)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.CloseSend(); err != nil {
			t.Fatal(err)
		}
		out := new(pb.StreamingInputCallResponse)
		if err := st.Receive(out); err != nil || out.AggregatedPayloadSize != 74922 {
			t.Errorf("%v, %v", out, err)
		}
	})
	sizes := []*pb.ResponseParameters{{Size: 31415}, {Size: 9}, {Size: 2653}, {Size: 58979}}
	t.Run("server stream", func(t *testing.T) {
		st, err := client.CallServerStream(t.Context(), spec("StreamingOutputCall"), &pb.StreamingOutputCallRequest{ResponseParameters: sizes})
		if err != nil {
			t.Fatal(err)
		}
		out := new(pb.StreamingOutputCallResponse)
		for _, want := range sizes {
			if err := st.Receive(out); err != nil || len(out.GetPayload().GetBody()) != int(want.Size) {
				t.Fatalf("%d bytes, %v", len(out.GetPayload().GetBody()), err)
			}
		}
		if err := st.Receive(out); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
	})
	t.Run("bidi stream", func(t *testing.T) {
		ctx, info := connect.NewClientContext(t.Context())
		binary := connect.EncodeBinaryHeader([]byte("\x00\xff"))
		info.RequestHeader().Set(initialKey, "text")
		info.RequestHeader().Set(trailingKey, binary)
		st, err := client.CallClientStream(ctx, spec("FullDuplexCall"))
		if err != nil {
			t.Fatal(err)
		}
		out := new(pb.StreamingOutputCallResponse)
		for _, size := range sizes {
			if err := st.Send(&pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{size}}); err != nil {
				t.Fatal(err)
			}
			if err := st.Receive(out); err != nil || len(out.GetPayload().GetBody()) != int(size.Size) {
				t.Fatalf("%d bytes, %v", len(out.GetPayload().GetBody()), err)
			}
		}
		if got := info.ResponseHeader().Get(initialKey); got != "text" {
			t.Errorf("the header is %q", got)
		}
		if err := st.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if err := st.Receive(out); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
		if got := info.ResponseTrailer().Get(trailingKey); got != binary {
			t.Errorf("the trailer is %q", got)
		}
	})
	t.Run("status", func(t *testing.T) {
		const text = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
		err := client.CallUnary(t.Context(), spec("UnaryCall"), &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: 2, Message: text}}, new(pb.SimpleResponse))
		e, ok := errors.AsType[*connect.Error](err)
		if !ok || e.Code() != connect.CodeUnknown || e.Message() != text {
			t.Errorf("the error is %v", err)
		}
		if err := client.CallUnary(t.Context(), spec("UnimplementedCall"), new(pb.Empty), new(pb.Empty)); connect.CodeOf(err) != connect.CodeUnimplemented {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := anser.NewServer(silent)
			pb.RegisterTestServiceServer(grpcstubs.NewRegistrar(s), interop.NewTestServer())
			network := new(ansertest.Network)
			client := connect.NewClient(connectstubs.NewTransport(runOn(t, s, network.Listen("a:1"), anser.Dialer(network.Dial))))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			st, err := client.CallClientStream(ctx, spec("FullDuplexCall"))
			if err != nil {
				t.Fatal(err)
			}
			if err := st.Receive(new(pb.StreamingOutputCallResponse)); connect.CodeOf(err) != connect.CodeDeadlineExceeded {
				t.Errorf("the error is %v", err)
			}
		})
	})
}

// failing is a service of gRPC that fails with a detail.
type failing struct {
	pb.UnimplementedTestServiceServer
}

func (failing) UnaryCall(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	s, err := status.New(codes.Aborted, "busy").WithDetails(durationpb.New(time.Minute))
	if err != nil {
		return nil, err
	}
	return nil, s.Err()
}

// Details of errors are the same on both sides.
func TestDetails(t *testing.T) {
	err := ofGRPC(t, failing{}).CallUnary(t.Context(), spec("UnaryCall"), new(pb.SimpleRequest), new(pb.SimpleResponse))
	e, ok := errors.AsType[*connect.Error](err)
	if !ok || e.Code() != connect.CodeAborted || e.Message() != "busy" || len(e.Details()) != 1 {
		t.Fatalf("Connect gets %v", err)
	}
	m, err := connectproto.UnmarshalErrorDetail(e.Details()[0])
	if d, ok := m.(*durationpb.Duration); !ok || d.AsDuration() != time.Minute {
		t.Errorf("Connect gets the detail %v, %v", m, err)
	}

	detail, err := connectproto.NewErrorDetail(durationpb.New(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	handlers := connect.NewServer()
	handlers.Register(connect.Method{Spec: spec("UnaryCall"), Handler: func(context.Context, connect.Spec, connect.ServerStream) error {
		return connect.NewError(connect.CodeAborted, "busy").WithDetail(detail)
	}})
	_, err = ofConnect(t, handlers).UnaryCall(t.Context(), new(pb.SimpleRequest))
	s := status.Convert(err)
	if s.Code() != codes.Aborted || s.Message() != "busy" || len(s.Details()) != 1 {
		t.Fatalf("gRPC gets %v with %v", s, s.Details())
	}
	if d, ok := s.Details()[0].(*durationpb.Duration); !ok || d.AsDuration() != time.Minute {
		t.Errorf("gRPC gets the detail %v", s.Details()[0])
	}
}

package protocols_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// start starts a server with all protocols, and returns its address.
func start(t *testing.T, add func(*anser.Server), opts ...anser.ServerOption) (*anser.Server, string) {
	t.Helper()
	return startWith(t, add, append(opts, protocols.All())...)
}

// startWith is start for a test that chooses the protocols: of two that begin in the same way, a
// server takes the first.
func startWith(t *testing.T, add func(*anser.Server), opts ...anser.ServerOption) (*anser.Server, string) {
	t.Helper()
	s := anser.NewServer(append(opts, anser.NoSignals(), silent)...)
	add(s)
	l, err := s.Listen("127.0.0.1:0")
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
	return s, l.Addr().String()
}

// serve is start for a test that does not need the server.
func serve(t *testing.T, add func(*anser.Server), opts ...anser.ServerOption) string {
	t.Helper()
	_, address := start(t, add, opts...)
	return address
}

// dialGRPC connects a stock grpc-go client.
func dialGRPC(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// interopCases are the cases of gRPC's interoperability tests that need no cloud and only the
// client of the service.
var interopCases = []struct {
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
}

// Every case of gRPC's interoperability tests that needs no cloud, with the stock grpc-go client
// and gRPC's own service on an Anser server. The functions end the process when a case fails.
func TestInteropOfGRPC(t *testing.T) {
	address := serve(t, addInterop)
	conn := dialGRPC(t, address)
	client := pb.NewTestServiceClient(conn)
	for _, test := range interopCases {
		t.Run(test.name, func(t *testing.T) { test.run(t.Context(), client) })
	}
	t.Run("unimplemented_service", func(t *testing.T) {
		interop.DoUnimplementedService(t.Context(), pb.NewUnimplementedServiceClient(conn))
	})
	t.Run("unimplemented_method", func(t *testing.T) { interop.DoUnimplementedMethod(t.Context(), conn) })
	t.Run("no_such_service", func(t *testing.T) {
		err := conn.Invoke(t.Context(), "/no.Such/Method", new(pb.Empty), new(pb.Empty))
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("the error is %v", err)
		}
	})
}

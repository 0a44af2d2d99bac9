package stubs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect/v2"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// spec returns what generated code of Connect says about a method of gRPC's test service.
func spec(name string) connect.Spec {
	d := pb.File_grpc_testing_test_proto.Services().ByName("TestService").Methods().ByName(protoreflect.Name(name))
	s := connect.Spec{Schema: d, Procedure: "/grpc.testing.TestService/" + name}
	if d.IsStreamingClient() {
		s.StreamType |= connect.StreamTypeClient
	}
	if d.IsStreamingServer() {
		s.StreamType |= connect.StreamTypeServer
	}
	options, _ := d.Options().(*descriptorpb.MethodOptions)
	s.IdempotencyLevel = connect.IdempotencyLevel(options.GetIdempotencyLevel())
	return s
}

// The keys that the test service returns to its client.
const (
	initialKey  = "x-grpc-test-echo-initial"
	trailingKey = "x-grpc-test-echo-trailing-bin"
)

// newHandlers returns gRPC's test service as handlers of Connect.
func newHandlers() *connect.Server {
	handlers := connect.NewServer()
	for name, handle := range map[string]connect.ServerFunc{
		"EmptyCall":           emptyCall,
		"UnaryCall":           unaryCall,
		"StreamingOutputCall": streamingOutputCall,
		"StreamingInputCall":  streamingInputCall,
		"FullDuplexCall":      fullDuplexCall,
	} {
		handlers.Register(connect.Method{Spec: spec(name), Handler: handle})
	}
	return handlers
}

func emptyCall(_ context.Context, _ connect.Spec, st connect.ServerStream) error {
	in := new(pb.Empty)
	if err := st.Receive(in); err != nil {
		return err
	}
	return st.Send(in)
}

func unaryCall(ctx context.Context, _ connect.Spec, st connect.ServerStream) error {
	in := new(pb.SimpleRequest)
	if err := st.Receive(in); err != nil {
		return err
	}
	echo(ctx)
	if err := wanted(in.GetResponseStatus()); err != nil {
		return err
	}
	return st.Send(&pb.SimpleResponse{Payload: payload(in.GetResponseSize())})
}

func streamingOutputCall(_ context.Context, _ connect.Spec, st connect.ServerStream) error {
	in := new(pb.StreamingOutputCallRequest)
	if err := st.Receive(in); err != nil {
		return err
	}
	return reply(st, in)
}

func streamingInputCall(_ context.Context, _ connect.Spec, st connect.ServerStream) error {
	out := new(pb.StreamingInputCallResponse)
	for {
		in := new(pb.StreamingInputCallRequest)
		err := st.Receive(in)
		if errors.Is(err, io.EOF) {
			return st.Send(out)
		}
		if err != nil {
			return err
		}
		out.AggregatedPayloadSize += int32(len(in.GetPayload().GetBody()))
	}
}

func fullDuplexCall(ctx context.Context, _ connect.Spec, st connect.ServerStream) error {
	echo(ctx)
	if err := st.SendHeaders(); err != nil {
		return err
	}
	for {
		in := new(pb.StreamingOutputCallRequest)
		err := st.Receive(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := wanted(in.GetResponseStatus()); err != nil {
			return err
		}
		if err := reply(st, in); err != nil {
			return err
		}
	}
}

// echo returns two headers of the request, as the test service must.
func echo(ctx context.Context) {
	info, _ := connect.CallInfoForServerContext(ctx)
	if values := info.RequestHeader().Values(initialKey); len(values) > 0 {
		info.ResponseHeader().SetValues(initialKey, values)
	}
	if values := info.RequestHeader().Values(trailingKey); len(values) > 0 {
		info.ResponseTrailer().SetValues(trailingKey, values)
	}
}

// wanted returns the error that a request asks for.
func wanted(s *pb.EchoStatus) error {
	if s.GetCode() == 0 {
		return nil
	}
	return connect.NewError(connect.Code(s.GetCode()), s.GetMessage())
}

func reply(st connect.ServerStream, in *pb.StreamingOutputCallRequest) error {
	for _, p := range in.GetResponseParameters() {
		time.Sleep(time.Duration(p.GetIntervalUs()) * time.Microsecond)
		if err := st.Send(&pb.StreamingOutputCallResponse{Payload: payload(p.GetSize())}); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

func payload(size int32) *pb.Payload { return &pb.Payload{Body: make([]byte, size)} }

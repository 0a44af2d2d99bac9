package protocols_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	alphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/grpcstubs"
)

func addInterop(s *anser.Server) {
	pb.RegisterTestServiceServer(grpcstubs.NewRegistrar(s), interop.NewTestServer())
}

// The health service tells the state of the server and of its services.
func TestHealth(t *testing.T) {
	client := healthpb.NewHealthClient(dialGRPC(t, serve(t, addInterop)))
	for _, service := range []string{"", "grpc.testing.TestService"} {
		out, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || out.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, out, err)
		}
	}
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "no.Such"}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown service: %v", err)
	}
	w, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "no.Such"})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := w.Recv(); err != nil || out.Status != healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Errorf("watching an unknown service: %v, %v", out, err)
	}
	all, err := client.List(t.Context(), new(healthpb.HealthListRequest))
	if err != nil || all.Statuses["grpc.testing.TestService"].GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the list is %v, %v", all, err)
	}
}

// A client that watches learns that the server drains.
func TestHealthOfADrain(t *testing.T) {
	s, address := start(t, addInterop)
	w, err := healthpb.NewHealthClient(dialGRPC(t, address)).Watch(t.Context(), new(healthpb.HealthCheckRequest))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := w.Recv(); err != nil || out.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("%v, %v", out, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	if out, err := w.Recv(); err != nil || out.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("during the drain: %v, %v", out, err)
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// Reflection tells the services, and their files with all imports.
func TestReflection(t *testing.T) {
	conn := dialGRPC(t, serve(t, addInterop))
	st, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(q *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := st.Send(q); err != nil {
			t.Fatal(err)
		}
		out, err := st.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(out.OriginalRequest, q) {
			t.Errorf("the answer to %v names the question %v", q, out.OriginalRequest)
		}
		return out
	}
	var names []string
	for _, s := range ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}).GetListServicesResponse().GetService() {
		names = append(names, s.Name)
	}
	if !slices.Contains(names, "grpc.testing.TestService") || !slices.Contains(names, "grpc.health.v1.Health") {
		t.Errorf("the services are %q", names)
	}
	files := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "grpc.testing.TestService.UnaryCall"}}).GetFileDescriptorResponse().GetFileDescriptorProto()
	var paths []string
	for _, data := range files {
		f := new(descriptorpb.FileDescriptorProto)
		if err := proto.Unmarshal(data, f); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, f.GetName())
	}
	for _, want := range []string{"grpc/testing/test.proto", "grpc/testing/messages.proto", "grpc/testing/empty.proto"} {
		if !slices.Contains(paths, want) {
			t.Errorf("the files are %q, without %s", paths, want)
		}
	}
	for _, q := range []*reflectionpb.ServerReflectionRequest{
		{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "no.Such"}},
		// A file of the program that no service needs.
		{MessageRequest: &reflectionpb.ServerReflectionRequest_FileByFilename{FileByFilename: "google/rpc/status.proto"}},
		{MessageRequest: &reflectionpb.ServerReflectionRequest_AllExtensionNumbersOfType{AllExtensionNumbersOfType: "no.Such"}},
	} {
		if e := ask(q).GetErrorResponse(); e.GetErrorCode() != int32(codes.NotFound) {
			t.Errorf("%v is answered with %v", q, e)
		}
	}

	old, err := alphapb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore SA1019 old clients ask it
	old.Send(&alphapb.ServerReflectionRequest{MessageRequest: &alphapb.ServerReflectionRequest_ListServices{}})
	//lint:ignore SA1019 as above
	if out, err := old.Recv(); err != nil || out.GetErrorResponse() != nil {
		t.Errorf("v1alpha: %v, %v", out, err)
	}
}

// A server that does not describe itself tells no services, and is called all the same.
func TestReflectionWithoutDescribe(t *testing.T) {
	conn := dialGRPC(t, serve(t, addInterop, anser.NoDescribe()))
	st, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	if out, err := st.Recv(); err != nil || len(out.GetListServicesResponse().GetService()) > 0 {
		t.Errorf("the list is %v, %v", out, err)
	}
	if _, err := pb.NewTestServiceClient(conn).EmptyCall(t.Context(), new(pb.Empty)); err != nil {
		t.Error(err)
	}
}

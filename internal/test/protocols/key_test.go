package protocols_test

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/anser-rpc/anser"
)

// A stock gRPC client gives a call an idempotency key by its metadata.
func TestKeysOverGRPC(t *testing.T) {
	var ran atomic.Int32
	address := serve(t, func(s *anser.Server) {
		anser.Handle(s, "grpc.testing.TestService.UnaryCall", func(_ context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			n := ran.Add(1)
			if in.ResponseSize < 0 {
				return nil, anser.Errorf(anser.NotFound, "run %d", n)
			}
			return &pb.SimpleResponse{Username: string('a' - 1 + n)}, nil
		}, anser.Deduplicate())
	})
	c := pb.NewTestServiceClient(dialGRPC(t, address))
	call := func(size int32, pairs ...string) (string, error) {
		out, err := c.UnaryCall(metadata.AppendToOutgoingContext(t.Context(), pairs...), &pb.SimpleRequest{ResponseSize: size})
		return out.GetUsername(), err
	}
	for range 3 {
		if got, err := call(1, "idempotency-key", "one"); got != "a" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := call(-1, "idempotency-key", "two", "anser-repeated", "false"); status.Code(err) != codes.NotFound || status.Convert(err).Message() != "run 2" {
			t.Error(err)
		}
	}
	if _, err := call(2, "idempotency-key", "one"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another request: %v", err)
	}
	if _, err := call(1, "idempotency-key", "three", "anser-repeated", "true"); status.Code(err) != codes.Unavailable {
		t.Errorf("an unknown key: %v", err)
	}
	if ran.Load() != 2 {
		t.Errorf("ran %d times, want 2", ran.Load())
	}
}

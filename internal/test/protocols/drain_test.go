package protocols_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
)

// Servers are replaced one after the other while stock gRPC clients call: no call fails, not
// even one whose method is not idempotent.
func TestDrainFailsNoCall(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	slow := func(s *anser.Server) {
		open.Handle(s, func(_ context.Context, in *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
			time.Sleep(time.Millisecond)
			return in, nil
		})
	}
	old, first := start(t, slow)
	servers := manual.NewBuilderWithScheme("servers")
	servers.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: first}}})
	conn, err := grpc.NewClient("servers:///x", grpc.WithResolvers(servers), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var calls sync.WaitGroup
	var done, failed atomic.Int64
	stop := make(chan struct{})
	for range 50 {
		calls.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				in, out := wrapperspb.String("x"), new(wrapperspb.StringValue)
				if err := conn.Invoke(t.Context(), "/test.Doors/Open", in, out, grpc.WaitForReady(true)); err != nil {
					if failed.Add(1) == 1 {
						t.Errorf("a call failed: %v", err)
					}
				}
				done.Add(1)
			}
		})
	}
	for range 5 {
		next, address := start(t, slow)
		servers.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: first}, {Addr: address}}})
		time.Sleep(100 * time.Millisecond) // both serve
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := old.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		cancel()
		servers.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: address}}})
		old, first = next, address
	}
	close(stop)
	calls.Wait()
	t.Logf("%d calls, %d failed", done.Load(), failed.Load())
}

package protocols_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/grpcstubs"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/telemetry/otel"
)

// passer is a service that forwards its call.
type passer struct {
	pb.UnimplementedTestServiceServer
	next pb.TestServiceClient
}

func (p *passer) EmptyCall(ctx context.Context, in *pb.Empty) (*pb.Empty, error) {
	return p.next.EmptyCall(ctx, in)
}

// A trace, its state and its baggage go through a server with module telemetry/otel, in by every
// protocol, out by gRPC and Connect, whether the trace is recorded or not.
func TestTracesThroughProtocols(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(otel.Sampler(nil), otel.IDs(), sdktrace.WithSpanProcessor(spans))
	o, err := otel.New(otel.Traces(provider), otel.Ratio(0))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var arrived metadata.MD // at the last server, which is of grpc-go or one that is called by Connect
	note := func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		mu.Lock()
		arrived, _ = metadata.FromIncomingContext(ctx)
		mu.Unlock()
		return new(pb.Empty), nil
	}
	_, stock := stockServer(t, func(s grpc.ServiceRegistrar) { pb.RegisterTestServiceServer(s, new(passer)) }, grpc.UnaryInterceptor(note))
	last := serve(t, func(s *anser.Server) {
		anser.Handle(s, "grpc.testing.TestService.EmptyCall", func(ctx context.Context, in *pb.Empty) (*pb.Empty, error) {
			trace, _ := anser.TraceFrom(ctx)
			mu.Lock()
			arrived = metadata.New(anser.MetadataFrom(ctx))
			arrived.Set("traceparent", fmt.Sprintf("00-%x-%x-%02x", trace.TraceID, trace.SpanID, trace.Flags))
			mu.Unlock()
			return in, nil
		})
	})
	out := map[string]*anser.Client{"gRPC": dialOut(t, stock, o.Option())}
	if out["Connect"], err = anser.Dial("http://"+last, protocols.Connect(protocols.UnencryptedHTTP2()), o.Option(), silent); err != nil {
		t.Fatal(err)
	}
	defer out["Connect"].Close()

	const id, state, baggage = "4bf92f3577b34da6a3ce929d0e0e4736", "rojo=00f067aa0ba902b7", "tenant=blue"
	for to, c := range out {
		front := serve(t, func(s *anser.Server) {
			pb.RegisterTestServiceServer(grpcstubs.NewRegistrar(s), &passer{next: pb.NewTestServiceClient(grpcstubs.NewConn(c))})
		}, o.Option())
		stub := pb.NewTestServiceClient(dialGRPC(t, front))
		web := func(header http.Header) error {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+front+"/grpc.testing.TestService/EmptyCall", strings.NewReader("{}"))
			if err != nil {
				return err
			}
			r.Header = header
			r.Header.Set("Content-Type", "application/json")
			response, err := http.DefaultClient.Do(r)
			if err == nil {
				response.Body.Close()
				if response.StatusCode != http.StatusOK {
					err = fmt.Errorf("answered %s", response.Status)
				}
			}
			return err
		}
		for _, flags := range []string{"00", "01"} {
			parent := "00-" + id + "-00f067aa0ba902b7-" + flags
			for from, call := range map[string]func() error{
				"gRPC": func() error {
					_, err := stub.EmptyCall(metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent, "tracestate", state, "baggage", baggage), new(pb.Empty))
					return err
				},
				"JSON over HTTP": func() error {
					return web(http.Header{"Traceparent": {parent}, "Tracestate": {state}, "Baggage": {baggage}})
				},
				"Connect": func() error {
					return web(http.Header{"Traceparent": {parent}, "Tracestate": {state}, "Baggage": {baggage}, "Connect-Protocol-Version": {"1"}})
				},
			} {
				if err := call(); err != nil {
					t.Fatalf("%s to %s: %v", from, to, err)
				}
				mu.Lock()
				got := arrived
				mu.Unlock()
				trace := strings.Split(strings.Join(got.Get("traceparent"), ""), "-")
				if len(trace) != 4 || trace[1] != id || trace[2] == "00f067aa0ba902b7" || trace[3] != flags {
					t.Errorf("%s to %s: traceparent %q, want the id of %q and another span", from, to, got.Get("traceparent"), parent)
				}
				if s, b := strings.Join(got.Get("tracestate"), ""), strings.Join(got.Get("baggage"), ""); s != state || b != baggage {
					t.Errorf("%s to %s, flags %s: state %q, baggage %q", from, to, flags, s, b)
				}
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
	for _, s := range spans.Ended() {
		if got := s.SpanContext(); got.TraceID().String() != id || got.TraceState().String() != state {
			t.Errorf("a span of the trace %v with the state %v", got.TraceID(), got.TraceState())
		}
	}
	if n := len(spans.Ended()); n < 10 { // the last call may not have ended yet
		t.Errorf("%d spans, want 12", n)
	}
}

package connectstubs_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/connectstubs"
	pb "github.com/anser-rpc/anser/connectstubs/internal/pingpb"
	"github.com/anser-rpc/anser/connectstubs/internal/pingpb/pingpbconnect"
)

const service = "anser.connectstubs.ping.v1.PingService."

// The four kinds of methods, with generated clients and handlers.
func TestKindsOfMethods(t *testing.T) {
	client, _ := open(t, numbers{})
	ctx := t.Context()
	t.Run("unary", func(t *testing.T) {
		out, err := client.Ping(ctx, &pb.PingRequest{Number: 7, Text: "x"})
		if err != nil || out.Number != 7 || out.Text != "x" {
			t.Errorf("%v, %v", out, err)
		}
	})
	t.Run("client stream", func(t *testing.T) {
		st, err := client.Sum(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 100 {
			if err := st.Send(&pb.SumRequest{Number: int64(n)}); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := st.CloseAndReceive(); err != nil || out.Sum != 4950 {
			t.Errorf("%v, %v", out, err)
		}
	})
	t.Run("client stream without messages", func(t *testing.T) {
		st, err := client.Sum(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := st.CloseAndReceive(); err != nil || out.Sum != 0 {
			t.Errorf("%v, %v", out, err)
		}
	})
	t.Run("server stream", func(t *testing.T) {
		for _, count := range []int64{0, 1, 500} {
			st, err := client.CountUp(ctx, &pb.CountUpRequest{Number: count})
			if err != nil {
				t.Fatal(err)
			}
			for n := range count {
				if out, err := st.Receive(); err != nil || out.Number != n+1 {
					t.Fatalf("%v, %v, want %d", out, err, n+1)
				}
			}
			for range 2 {
				if _, err := st.Receive(); !errors.Is(err, io.EOF) {
					t.Errorf("at the end: %v", err)
				}
			}
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("bidi stream", func(t *testing.T) {
		st, err := client.CumSum(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range []int64{0, 1, 3, 6} {
			if err := st.Send(&pb.CumSumRequest{Number: int64(n)}); err != nil {
				t.Fatal(err)
			}
			if out, err := st.Receive(); err != nil || out.Sum != want {
				t.Errorf("%v, %v, want %d", out, err, want)
			}
		}
		for range 2 {
			if err := st.CloseSend(); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Send(new(pb.CumSumRequest)); !errors.Is(err, io.EOF) {
			t.Errorf("Send after CloseSend: %v", err)
		}
		if _, err := st.Receive(); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
	})
}

// One goroutine sends while another one receives, which may also be the first.
func TestBothDirections(t *testing.T) {
	client, _ := open(t, numbers{})
	st, err := client.CumSum(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const count = 2000
	sums := make(chan int64, 1)
	go func() {
		var last int64
		for {
			out, err := st.Receive()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				sums <- last
				return
			}
			last = out.Sum
		}
	}()
	for range count {
		if err := st.Send(&pb.CumSumRequest{Number: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if sum := <-sums; sum != count {
		t.Errorf("the last sum is %d", sum)
	}
}

// Clients of Anser without the stubs call the same methods and see no messages with headers.
func TestClientsWithoutStubs(t *testing.T) {
	_, c := open(t, &probe{cumSum: func(ctx context.Context, st pingpbconnect.PingServiceCumSumServerStream) error {
		info, _ := connect.CallInfoForServerContext(ctx)
		info.ResponseHeader().Set("H", "1")
		return st.Send(&pb.CumSumResponse{Sum: 3})
	}})
	out, err := anser.Call[pb.PingResponse](t.Context(), c, service+"Ping", &pb.PingRequest{Text: "x"})
	if err != nil || out.Text != "x" {
		t.Errorf("Ping: %v, %v", out, err)
	}
	st, err := anser.Open[pb.CumSumRequest, pb.CumSumResponse](t.Context(), c, service+"CumSum")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := st.Recv(); err != nil || m.Sum != 3 {
		t.Errorf("CumSum: %v, %v", m, err)
	}
	if _, err := st.Recv(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// Messages that are not the generated types, such as those of proxies, are converted.
func TestDynamicMessages(t *testing.T) {
	handlers := connect.NewServer()
	request := new(pb.PingRequest).ProtoReflect().Descriptor()
	handlers.Register(connect.Method{
		Spec: connect.Spec{Procedure: pingpbconnect.PingServicePingProcedure, Schema: methodNamed("Ping")},
		Handler: func(_ context.Context, _ connect.Spec, st connect.ServerStream) error {
			in := dynamicpb.NewMessage(request)
			if err := st.Receive(in); err != nil {
				return err
			}
			if err := st.Receive(in); !errors.Is(err, io.EOF) {
				return connect.Errorf(connect.CodeInternal, "the second request: %v", err)
			}
			return st.Send(&pb.PingResponse{Text: in.Get(request.Fields().ByName("text")).String()})
		},
	})
	client := connect.NewClient(connectstubs.NewTransport(serve(t, handlers)))
	in := dynamicpb.NewMessage(request)
	if err := proto.Unmarshal([]byte("\x12\x01x"), in); err != nil {
		t.Fatal(err)
	}
	out := new(pb.PingResponse)
	err := client.CallUnary(t.Context(), connect.Spec{Procedure: pingpbconnect.PingServicePingProcedure}, in, out)
	if err != nil || out.Text != "x" {
		t.Errorf("%v, %v", out, err)
	}
}

// Servers say the idempotency level of the contract, and clients know it from their own code.
func TestIdempotencyLevel(t *testing.T) {
	_, c := open(t, numbers{})
	var list anser.MethodList
	if err := c.Call(t.Context(), anser.MethodsName, new(anser.None), &list); err != nil {
		t.Fatal(err)
	}
	idempotent := map[string]bool{}
	for _, m := range list.Methods {
		idempotent[m.Name] = m.Idempotent
	}
	if !idempotent[service+"Ping"] || idempotent[service+"Store"] || len(idempotent) != 5 {
		t.Errorf("the server says %v", idempotent)
	}

	// A server that does not say it.
	s := anser.NewServer(silent)
	calls := map[string]int{}
	for _, name := range []string{"Ping", "Store"} {
		if err := anser.Handle(s, service+name, func(context.Context, *pb.PingRequest) (*pb.PingResponse, error) {
			if calls[name]++; calls[name] == 1 {
				return nil, anser.Errorf(anser.Unavailable, "later")
			}
			return &pb.PingResponse{Text: name}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	client := newClient(run(t, s, anser.RetryOn(anser.Unavailable)))
	if out, err := client.Ping(t.Context(), new(pb.PingRequest)); err != nil || out.Text != "Ping" || calls["Ping"] != 2 {
		t.Errorf("Ping: %v, %v after %d calls", out, err, calls["Ping"])
	}
	if _, err := client.Store(t.Context(), new(pb.PingRequest)); connect.CodeOf(err) != connect.CodeUnavailable || calls["Store"] != 1 {
		t.Errorf("Store: %v after %d calls", err, calls["Store"])
	}
}

// Interceptors of Connect run on both sides, in their order, and may change calls and streams.
func TestInterceptors(t *testing.T) {
	var seen []string
	note := func(name string) connect.ServerInterceptor {
		return func(next connect.ServerFunc) connect.ServerFunc {
			return func(ctx context.Context, spec connect.Spec, st connect.ServerStream) error {
				info, _ := connect.CallInfoForServerContext(ctx)
				seen = append(seen, name+spec.Procedure[strings.LastIndex(spec.Procedure, "/"):]+"="+info.RequestHeader().Get("From"))
				info.ResponseTrailer().Add("Passed", name)
				return next(ctx, spec, st)
			}
		}
	}
	handlers := connect.NewServer(note("a"), note("b"))
	pingpbconnect.RegisterPingServiceHandler(handlers, numbers{})
	client := pingpbconnect.NewPingServiceClient(connect.NewClient(connectstubs.NewTransport(serve(t, handlers)),
		func(next connect.ClientFunc) connect.ClientFunc {
			return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
				if spec.Procedure == pingpbconnect.PingServiceStoreProcedure {
					return nil, connect.NewError(connect.CodePermissionDenied, "not here")
				}
				info, _ := connect.CallInfoForClientContext(ctx)
				info.RequestHeader().Set("From", spec.StreamType.String())
				return next(ctx, spec)
			}
		}))
	ctx, info := connect.NewClientContext(t.Context())
	if _, err := client.Ping(ctx, new(pb.PingRequest)); err != nil {
		t.Fatal(err)
	}
	if passed := info.ResponseTrailer().Values("Passed"); !slices.Equal(passed, []string{"a", "b"}) {
		t.Errorf("the trailer is %q", passed)
	}
	st, err := client.CountUp(t.Context(), new(pb.CountUpRequest))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Receive(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := client.Store(t.Context(), new(pb.PingRequest)); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Error(err)
	}
	if got := strings.Join(seen, " "); got != "a/Ping=unary b/Ping=unary a/CountUp=server b/CountUp=server" {
		t.Errorf("the interceptors saw %s", got)
	}
}

// The list of a client's streams says which sides send.
func TestKindsOfStreams(t *testing.T) {
	client, c := open(t, numbers{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sum, err := client.Sum(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := sum.Send(&pb.SumRequest{Number: 1}); err != nil {
		t.Fatal(err)
	}
	both, err := client.CumSum(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := both.Send(&pb.CumSumRequest{Number: 1}); err != nil {
		t.Fatal(err)
	}
	list, _ := c.Streams(10)
	if len(list) != 2 || !list[0].ClientStream || list[0].ServerStream || !list[1].ClientStream || !list[1].ServerStream {
		t.Errorf("the streams are %+v", list)
	}
}

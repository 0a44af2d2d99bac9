package connectstubs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	pb "github.com/anser-rpc/anser/connectstubs/internal/pingpb"
	"github.com/anser-rpc/anser/connectstubs/internal/pingpb/pingpbconnect"
)

// withDetail returns an error with a detail.
func withDetail(t *testing.T) *connect.Error {
	t.Helper()
	d, err := connectproto.NewErrorDetail(durationpb.New(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return connect.NewError(connect.CodeAborted, "busy").WithDetail(d)
}

func TestErrorWithDetails(t *testing.T) {
	client, _ := open(t, &probe{
		ping: func(context.Context, *pb.PingRequest) (*pb.PingResponse, error) { return nil, withDetail(t) },
		countUp: func(_ context.Context, _ *pb.CountUpRequest, st pingpbconnect.PingServiceCountUpServerStream) error {
			if err := st.Send(new(pb.CountUpResponse)); err != nil {
				return err
			}
			return withDetail(t)
		},
	})
	_, ofCall := client.Ping(t.Context(), new(pb.PingRequest))
	st, err := client.CountUp(t.Context(), new(pb.CountUpRequest))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Receive(); err != nil {
		t.Fatal(err)
	}
	_, ofStream := st.Receive()
	for _, err := range []error{ofCall, ofStream} {
		e, ok := errors.AsType[*connect.Error](err)
		if !ok || e.Code() != connect.CodeAborted || e.Message() != "busy" || !e.IsRemote() || len(e.Details()) != 1 {
			t.Fatalf("the error is %v", err)
		}
		if e.Details()[0].Type != "google.protobuf.Duration" {
			t.Errorf("the detail has the type %s", e.Details()[0].Type)
		}
		m, err := connectproto.UnmarshalErrorDetail(e.Details()[0])
		if d, ok := m.(*durationpb.Duration); !ok || d.AsDuration() != time.Minute {
			t.Errorf("the detail is %v, %v", m, err)
		}
		own, ok := errors.AsType[*anser.Error](e)
		if !ok || own.Outcome != anser.Executed || !errors.Is(e, anser.Aborted) {
			t.Errorf("the error wraps %+v", own)
		}
	}
}

// What clients get for the errors of handlers follows Connect's rules.
func TestErrorsOfHandlers(t *testing.T) {
	downstream := &anser.Error{Code: anser.NotFound, Message: "secret", Method: "Other.Method", Remote: true}
	for _, test := range []struct {
		err  error
		code connect.Code
		text string
	}{
		{connect.NewError(connect.CodeDataLoss, "lost"), connect.CodeDataLoss, "lost"},
		{connect.NewError(connect.CodeDataLoss, ""), connect.CodeDataLoss, ""},
		{connect.NewError(connect.CodeDataLoss, "\xff"), connect.CodeDataLoss, "�"},
		{fmt.Errorf("wrapped: %w", connect.NewError(connect.CodeNotFound, "none")), connect.CodeNotFound, "none"},
		{connect.NewError(connect.CodeNotFound, "none").WithCause(downstream), connect.CodeNotFound, "none"},
		{connect.NewError(connect.CodeNotFound, "secret").WithRemote(), connect.CodeInternal, ""},
		{(*connect.Error)(nil), connect.CodeUnknown, ""},
		{anser.Errorf(anser.NotFound, "none"), connect.CodeNotFound, "none"},
		{downstream, connect.CodeInternal, ""},
		{errors.New("secret"), connect.CodeUnknown, ""},
		{context.DeadlineExceeded, connect.CodeDeadlineExceeded, ""},
		{fmt.Errorf("secret: %w", context.Canceled), connect.CodeCanceled, ""},
		{io.EOF, connect.CodeUnknown, ""},
	} {
		client, _ := open(t, &probe{
			store: func(context.Context, *pb.PingRequest) (*pb.PingResponse, error) { return nil, test.err },
			countUp: func(context.Context, *pb.CountUpRequest, pingpbconnect.PingServiceCountUpServerStream) error {
				return test.err
			},
		})
		_, ofCall := client.Store(t.Context(), new(pb.PingRequest))
		st, err := client.CountUp(t.Context(), new(pb.CountUpRequest))
		if err != nil {
			t.Fatal(err)
		}
		_, ofStream := st.Receive()
		for _, err := range []error{ofCall, ofStream} {
			e, ok := errors.AsType[*connect.Error](err)
			if !ok || e.Code() != test.code || e.Message() != test.text {
				t.Errorf("%v becomes %v", test.err, err)
			}
		}
	}
}

// A call that failed for good further down is not retried further up.
func TestRetriesOfChains(t *testing.T) {
	back, _ := open(t, &probe{store: func(context.Context, *pb.PingRequest) (*pb.PingResponse, error) {
		return nil, anser.Errorf(anser.Unavailable, "down").WithRetryAfter(anser.RetryNever)
	}})
	front, _ := open(t, &probe{store: func(ctx context.Context, in *pb.PingRequest) (*pb.PingResponse, error) {
		return back.Store(ctx, in)
	}})
	_, err := front.Store(t.Context(), new(pb.PingRequest))
	e, ok := errors.AsType[*anser.Error](err)
	if !ok || e.RetryAfter != anser.RetryNever || connect.CodeOf(err) != connect.CodeInternal || strings.Contains(err.Error(), "down") {
		t.Errorf("the error is %v, with the advice %v", err, e.RetryAfter)
	}
}

func TestPanicOfHandler(t *testing.T) {
	client, _ := open(t, &probe{ping: func(context.Context, *pb.PingRequest) (*pb.PingResponse, error) { panic("secret") }})
	if _, err := client.Ping(t.Context(), new(pb.PingRequest)); connect.CodeOf(err) != connect.CodeInternal || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}

func TestUnimplemented(t *testing.T) {
	handlers := connect.NewServer()
	handlers.Register(connect.Method{Spec: connect.Spec{Procedure: pingpbconnect.PingServicePingProcedure, Schema: methodNamed("Ping")}})
	client := newClient(serve(t, handlers))
	if _, err := client.Store(t.Context(), new(pb.PingRequest)); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a call: %v", err)
	}
	st, err := client.CumSum(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Receive(); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a stream: %v", err)
	}
}

// The error of this side says why nothing was sent.
func TestServerThatIsGone(t *testing.T) {
	c, err := anser.Dial("127.0.0.1:1", silent, anser.WithFailMode(anser.Failfast), anser.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client := newClient(c)
	_, ofCall := client.Ping(t.Context(), new(pb.PingRequest))
	_, ofStream := client.CountUp(t.Context(), new(pb.CountUpRequest))
	for _, err := range []error{ofCall, ofStream} {
		e, ok := errors.AsType[*connect.Error](err)
		if !ok || e.IsRemote() || anser.OutcomeOf(err) != anser.NotSent || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("the error is %v", err)
		}
	}
}

// The deadline of a caller is that of the handler, and its end cancels the handler.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		wait := func(ctx context.Context) error {
			if _, ok := ctx.Deadline(); !ok {
				return connect.NewError(connect.CodeInternal, "there is no deadline")
			}
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		}
		s := mounted(t, handlersOf(&probe{
			store: func(ctx context.Context, _ *pb.PingRequest) (*pb.PingResponse, error) { return nil, wait(ctx) },
			countUp: func(ctx context.Context, _ *pb.CountUpRequest, _ pingpbconnect.PingServiceCountUpServerStream) error {
				return wait(ctx)
			},
		}))
		network := new(ansertest.Network)
		client := newClient(runOn(t, s, network.Listen("a:1"), anser.Dialer(network.Dial)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, ofCall := client.Store(ctx, new(pb.PingRequest))
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		st, err := client.CountUp(ctx, new(pb.CountUpRequest))
		if err != nil {
			t.Fatal(err)
		}
		_, ofStream := st.Receive()
		for _, err := range []error{ofCall, ofStream} {
			if connect.CodeOf(err) != connect.CodeDeadlineExceeded {
				t.Errorf("the error is %v", err)
			}
			<-ended
		}
	})
}

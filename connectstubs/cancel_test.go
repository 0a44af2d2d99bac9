package connectstubs_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"connectrpc.com/connect/v2"

	"github.com/anser-rpc/anser/connectstubs"
	pb "github.com/anser-rpc/anser/connectstubs/internal/pingpb"
	"github.com/anser-rpc/anser/connectstubs/internal/pingpb/pingpbconnect"
)

// Cancelling a context and closing a stream end the handler.
func TestCancel(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	wait := func(ctx context.Context) error {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return ctx.Err()
	}
	client, c := open(t, &probe{
		store:  func(ctx context.Context, _ *pb.PingRequest) (*pb.PingResponse, error) { return nil, wait(ctx) },
		cumSum: func(ctx context.Context, _ pingpbconnect.PingServiceCumSumServerStream) error { return wait(ctx) },
	})
	raw := connect.NewClient(connectstubs.NewTransport(c))
	unary := connect.Spec{Procedure: pingpbconnect.PingServiceStoreProcedure}
	for name, call := range map[string]func(ctx context.Context, cancel context.CancelFunc) error{
		"call": func(ctx context.Context, cancel context.CancelFunc) error {
			go func() {
				<-began
				cancel()
			}()
			_, err := client.Store(ctx, new(pb.PingRequest))
			return err
		},
		"call that is closed": func(ctx context.Context, _ context.CancelFunc) error {
			st, err := raw.CallClientStream(ctx, unary)
			if err != nil {
				return err
			}
			if err := st.Send(new(pb.PingRequest)); err != nil {
				return err
			}
			go func() {
				<-began
				_ = st.Close()
			}()
			return st.Receive(new(pb.PingResponse))
		},
		"stream": func(ctx context.Context, cancel context.CancelFunc) error {
			st, err := client.CumSum(ctx)
			if err != nil {
				return err
			}
			go func() {
				<-began
				cancel()
			}()
			_, err = st.Receive()
			if sent := st.Send(new(pb.CumSumRequest)); !errors.Is(sent, io.EOF) {
				t.Errorf("Send after the end: %v", sent)
			}
			return err
		},
		"stream that is closed": func(ctx context.Context, _ context.CancelFunc) error {
			st, err := client.CumSum(ctx)
			if err != nil {
				return err
			}
			go func() {
				<-began
				for range 2 {
					_ = st.Close()
				}
			}()
			_, err = st.Receive()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := call(ctx, cancel)
			if connect.CodeOf(err) != connect.CodeCanceled || !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
			<-ended
		})
	}
}

// A call that was closed before it was made is never made.
func TestCloseBeforeSend(t *testing.T) {
	_, c := open(t, numbers{})
	raw := connect.NewClient(connectstubs.NewTransport(c))
	for _, spec := range []connect.Spec{
		{Procedure: pingpbconnect.PingServicePingProcedure},
		{Procedure: pingpbconnect.PingServiceCumSumProcedure, StreamType: connect.StreamTypeBidi},
	} {
		st, err := raw.CallClientStream(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Receive(new(pb.PingResponse)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", spec.StreamType, err)
		}
	}
}

// Streams that are used against their type return errors.
func TestWrongUseOfStreams(t *testing.T) {
	_, c := open(t, numbers{})
	raw := connect.NewClient(connectstubs.NewTransport(c))
	start := func(kind connect.StreamType, procedure string) connect.ClientStream {
		st, err := raw.CallClientStream(t.Context(), connect.Spec{Procedure: procedure, StreamType: kind})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		return st
	}
	unary := func() connect.ClientStream {
		return start(connect.StreamTypeUnary, pingpbconnect.PingServicePingProcedure)
	}
	st := unary()
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := st.Receive(new(pb.PingResponse)); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a call without a request: %v", err)
	}
	st = unary()
	if err := st.SendHeaders(); err != nil {
		t.Error(err)
	}
	if err := st.Send("text"); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("a request that is not protobuf: %v", err)
	}
	if err := st.Send(new(pb.PingRequest)); err != nil {
		t.Fatal(err)
	}
	if err := st.Send(new(pb.PingRequest)); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("two requests: %v", err)
	}
	if err := st.Receive(new(pb.PingResponse)); err != nil {
		t.Error(err)
	}
	if err := st.Receive(new(pb.PingResponse)); !errors.Is(err, io.EOF) {
		t.Errorf("the second reply: %v", err)
	}
	st = start(connect.StreamTypeServer, pingpbconnect.PingServiceCountUpProcedure)
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := st.Receive(new(pb.CountUpResponse)); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a server stream without a request: %v", err)
	}
	st = start(connect.StreamTypeServer, pingpbconnect.PingServiceCountUpProcedure)
	if err := st.Send(new(pb.CountUpRequest)); err != nil {
		t.Fatal(err)
	}
	if err := st.Send(new(pb.CountUpRequest)); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a server stream with two requests: %v", err)
	}
	st = start(connect.StreamTypeClient, pingpbconnect.PingServiceCountUpProcedure)
	if err := st.Send(&pb.CountUpRequest{Number: 2}); err != nil {
		t.Fatal(err)
	}
	if err := st.Receive(new(pb.CountUpResponse)); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a client stream with two replies: %v", err)
	}
	for procedure, kind := range map[string]connect.StreamType{
		"malformed": connect.StreamTypeUnary, "/a.B/": connect.StreamTypeUnary, "/a/b/c": connect.StreamTypeBidi, "/a.B/C": 9,
	} {
		if _, err := raw.CallClientStream(t.Context(), connect.Spec{Procedure: procedure, StreamType: kind}); connect.CodeOf(err) == connect.CodeUnknown || err == nil {
			t.Errorf("%s, %s: %v", procedure, kind, err)
		}
	}
	if _, err := newClient(nil).Ping(t.Context(), new(pb.PingRequest)); connect.CodeOf(err) != connect.CodeInternal {
		t.Errorf("a nil client: %v", err)
	}
}

// A message that is too large is an error of Send, and the stream goes on.
func TestLargeMessage(t *testing.T) {
	_, c := open(t, numbers{})
	st, err := connect.NewClient(connectstubs.NewTransport(c)).CallClientStream(t.Context(), connect.Spec{
		Procedure: pingpbconnect.PingServiceCumSumProcedure, StreamType: connect.StreamTypeBidi,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.SendHeaders(); err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&pb.PingRequest{Text: string(make([]byte, 8<<20))}); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("Send: %v", err)
	}
	if err := st.Send(&pb.CumSumRequest{Number: 3}); err != nil {
		t.Fatal(err)
	}
	out := new(pb.CumSumResponse)
	if err := st.Receive(out); err != nil || out.Sum != 3 {
		t.Errorf("%v, %v", out, err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}

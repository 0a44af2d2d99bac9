package protocols_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/grpcstubs"
	"github.com/anser-rpc/anser/protocols"
)

// stockServer starts a grpc-go server, and returns its address.
func stockServer(t *testing.T, add func(grpc.ServiceRegistrar), opts ...grpc.ServerOption) (*grpc.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(opts...)
	add(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		<-served
	})
	return s, l.Addr().String()
}

// dialOut connects an Anser client to a gRPC server.
func dialOut(t *testing.T, address string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial("grpc://"+address, append([]anser.DialOption{protocols.GRPC()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Every case of gRPC's interoperability tests that needs no cloud, with generated gRPC stubs on
// an Anser client, and the stock grpc-go server.
func TestInteropWithServersOfGRPC(t *testing.T) {
	_, address := stockServer(t, func(s grpc.ServiceRegistrar) { pb.RegisterTestServiceServer(s, interop.NewTestServer()) })
	conn := grpcstubs.NewConn(dialOut(t, address))
	client := pb.NewTestServiceClient(conn)
	for _, test := range interopCases {
		t.Run(test.name, func(t *testing.T) { test.run(t.Context(), client) })
	}
	t.Run("unimplemented_service", func(t *testing.T) {
		interop.DoUnimplementedService(t.Context(), pb.NewUnimplementedServiceClient(conn))
	})
	t.Run("no_such_service", func(t *testing.T) {
		err := conn.Invoke(context.Background(), "/no.Such/Method", new(pb.Empty), new(pb.Empty))
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("the error is %v", err)
		}
	})
}

// bytesValue is the message of the service below.
type bytesValue = wrapperspb.BytesValue

// The methods of the service below, as Anser clients name them.
const (
	say  anser.Method[bytesValue, bytesValue]       = "test.Echo.Say"
	chat anser.StreamMethod[bytesValue, bytesValue] = "test.Echo.Chat"
)

// echo is a grpc-go service.
type echo struct {
	unary func(ctx context.Context, in *bytesValue) (*bytesValue, error)
	bidi  func(st grpc.BidiStreamingServer[bytesValue, bytesValue]) error
}

func (e *echo) add(s grpc.ServiceRegistrar) {
	if e.unary == nil {
		e.unary = func(_ context.Context, in *bytesValue) (*bytesValue, error) { return in, nil }
	}
	if e.bidi == nil {
		e.bidi = func(st grpc.BidiStreamingServer[bytesValue, bytesValue]) error {
			for {
				in, err := st.Recv()
				if err == io.EOF {
					return nil
				}
				if err != nil {
					return err
				}
				if err := st.Send(in); err != nil {
					return err
				}
			}
		}
	}
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(bytesValue)
			if err := decode(in); err != nil {
				return nil, err
			}
			return e.unary(ctx, in)
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Chat", ClientStreams: true, ServerStreams: true, Handler: func(_ any, st grpc.ServerStream) error {
			return e.bidi(&grpc.GenericServerStream[bytesValue, bytesValue]{ServerStream: st})
		}}},
	}, e)
}

func payload(n int) *bytesValue { return wrapperspb.Bytes(bytes.Repeat([]byte{'x'}, n)) }

func minute(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Messages of all sizes pass windows that are much smaller, in both directions.
func TestOutMessagesAndWindows(t *testing.T) {
	_, address := stockServer(t, new(echo).add, grpc.StaticStreamWindowSize(64<<10), grpc.StaticConnWindowSize(64<<10), grpc.MaxRecvMsgSize(64<<20))
	for _, windows := range [][2]int{{16 << 10, 16 << 10}, {16 << 10, 64 << 10}, {256 << 10, 1 << 20}, {4 << 20, 16 << 20}} {
		c := dialOut(t, address, anser.FlowControlWindows(windows[0], windows[1]), anser.MaxMessage(16<<20))
		ctx := minute(t)
		st, err := chat.Open(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		for _, size := range []int{0, 1, 4 << 10, 16<<10 - 5, 16 << 10, 64 << 10, 1 << 20, 8 << 20} {
			calls.Go(func() {
				out, err := say.Call(ctx, c, payload(size))
				if err != nil || len(out.Value) != size {
					t.Errorf("%v: a call with %d bytes: %d, %v", windows, size, len(out.GetValue()), err)
				}
			})
			for range 3 {
				if err := st.Send(payload(size)); err != nil {
					t.Fatal(err)
				}
				out, err := st.Recv()
				if err != nil || len(out.Value) != size {
					t.Fatalf("%v: a message with %d bytes: %d, %v", windows, size, len(out.GetValue()), err)
				}
			}
		}
		calls.Wait()
		st.CloseSend()
		if _, err := st.Recv(); err != io.EOF {
			t.Errorf("the stream ends with %v", err)
		}
	}
}

// Messages that wait for their reader reach it before the end of the stream, and hold up nothing
// else.
func TestOutUnreadMessages(t *testing.T) {
	const messages = 300
	for _, end := range []error{nil, status.Error(codes.Aborted, "enough")} {
		e := &echo{bidi: func(st grpc.BidiStreamingServer[bytesValue, bytesValue]) error {
			for range messages {
				if err := st.Send(payload(1000)); err != nil {
					return err
				}
			}
			st.SetTrailer(metadata.Pairs("sent", "all"))
			return end
		}}
		_, address := stockServer(t, e.add)
		c := dialOut(t, address, anser.Conns(1), anser.FlowControlWindows(16<<10, 64<<10))
		ctx := minute(t)
		slow, err := chat.Open(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			quick, err := chat.Open(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err := range quick.All() {
				if err == nil {
					n++
				}
			}
			if n != messages {
				t.Errorf("the reader has got %d messages", n)
			}
			if _, err := say.Call(ctx, c, payload(1)); err != nil {
				t.Error(err)
			}
		}
		n := 0
		for {
			if _, err = slow.Recv(); err != nil {
				break
			}
			n++
		}
		if n != messages || anser.CodeOf(err) != anser.Code(status.Code(end)) && err != io.EOF || slow.Trailer()["sent"] != "all" {
			t.Errorf("%d messages, then %v with trailers %v", n, err, slow.Trailer())
		}
	}
}

// A server that allows few calls at once gets the others later.
func TestOutMoreCallsThanTheServerAllows(t *testing.T) {
	var running, most atomic.Int32
	release := make(chan struct{})
	e := &echo{unary: func(ctx context.Context, in *bytesValue) (*bytesValue, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if len(in.Value) == 0 {
			<-release
		}
		return in, nil
	}}
	_, address := stockServer(t, e.add, grpc.MaxConcurrentStreams(3))
	c := dialOut(t, address, anser.Conns(1))
	ctx := minute(t)
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			if _, err := say.Call(ctx, c, payload(0)); err != nil {
				t.Error(err)
			}
		})
	}
	for running.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := say.Call(short, c, payload(1)); anser.CodeOf(err) != anser.DeadlineExceeded {
		t.Errorf("a call that has to wait too long: %v", err)
	}
	for range 200 {
		calls.Go(func() {
			out, err := say.Call(ctx, c, payload(100_000))
			if err != nil || len(out.Value) != 100_000 {
				t.Error(len(out.GetValue()), err)
			}
		})
	}
	close(release)
	calls.Wait()
	if most.Load() > 3 {
		t.Errorf("%d calls ran at once", most.Load())
	}
}

// Servers are replaced one after the other: no call fails, although no method is idempotent.
func TestOutDrainFailsNoCall(t *testing.T) {
	e := &echo{unary: func(_ context.Context, in *bytesValue) (*bytesValue, error) {
		time.Sleep(time.Millisecond)
		return in, nil
	}}
	first, a := stockServer(t, e.add)
	second, b := stockServer(t, e.add)
	_, last := stockServer(t, e.add)
	c := dialOut(t, a+","+b+","+last)
	ctx, cancel := context.WithCancel(minute(t))
	var calls sync.WaitGroup
	var made atomic.Int64
	for range 20 {
		calls.Go(func() {
			for ctx.Err() == nil {
				if _, err := say.Call(context.Background(), c, payload(10)); err != nil {
					t.Error(err)
					return
				}
				made.Add(1)
			}
		})
	}
	await := func(n int64) {
		for end := time.Now().Add(time.Minute); made.Load() < n && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	await(500)
	first.GracefulStop()
	await(made.Load() + 500)
	second.GracefulStop()
	await(made.Load() + 500)
	cancel()
	calls.Wait()
}

// A server that ends is noticed at once; a call that another one can run is made there.
func TestOutServerEnds(t *testing.T) {
	began := make(chan struct{}, 1)
	e := &echo{unary: func(ctx context.Context, in *bytesValue) (*bytesValue, error) {
		if len(in.Value) == 0 {
			began <- struct{}{}
			<-ctx.Done()
		}
		return in, nil
	}}
	s, address := stockServer(t, e.add)
	c := dialOut(t, address)
	failed := make(chan error, 1)
	go func() {
		_, err := say.Call(minute(t), c, payload(0))
		failed <- err
	}()
	<-began
	s.Stop()
	err := <-failed
	if e, ok := errors.AsType[*anser.Error](err); !ok || e.Code != anser.Unavailable || e.Outcome != anser.OutcomeUnknown {
		t.Errorf("the call ends with %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = say.Call(ctx, c, payload(1))
	if e, ok := errors.AsType[*anser.Error](err); !ok || e.Outcome != anser.NotSent {
		t.Errorf("a call without a server: %v", err)
	}
}

// What a call carries reaches the server, and what the server answers reaches the caller.
func TestOutMetadataErrorsAndCancel(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	e := &echo{unary: func(ctx context.Context, in *bytesValue) (*bytesValue, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		deadline, bounded := ctx.Deadline()
		grpc.SetHeader(ctx, metadata.Pairs("first", "header"))
		grpc.SetTrailer(ctx, metadata.Pairs("last", "trailer", "raw-bin", "\x00\xff"))
		switch string(in.Value) {
		case "details":
			s, _ := status.New(codes.FailedPrecondition, "not now: 100 % é").WithDetails(&errdetails.ErrorInfo{Reason: "why"})
			return nil, s.Err()
		case "wait":
			began <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
			return nil, ctx.Err()
		}
		return wrapperspb.Bytes(fmt.Appendf(nil, "%q %q %v", md["tenant"], md["key-bin"], bounded && time.Until(deadline) > 30*time.Second)), nil
	}}
	_, address := stockServer(t, e.add)
	c := dialOut(t, address)
	ctx := anser.WithMetadata(minute(t), anser.Metadata{"tenant": "a", "key-bin": "\x01\xfe"})
	var trailer anser.Metadata
	out, err := say.Call(ctx, c, payload(1), anser.Trailer(&trailer))
	if want := `["a"] ["\x01\xfe"] true`; err != nil || string(out.Value) != want {
		t.Errorf("the handler has seen %s, want %s (%v)", out.GetValue(), want, err)
	}
	if trailer["last"] != "trailer" || trailer["raw-bin"] != "\x00\xff" {
		t.Errorf("the trailers are %q", trailer)
	}
	_, err = say.Call(ctx, c, wrapperspb.Bytes([]byte("details")))
	fault, ok := errors.AsType[*anser.Error](err)
	if !ok || fault.Code != anser.FailedPrecondition || fault.Message != "not now: 100 % é" || fault.Outcome != anser.Executed {
		t.Errorf("the error is %+v", fault)
	}
	err = grpcstubs.NewConn(c).Invoke(ctx, "/test.Echo/Say", wrapperspb.Bytes([]byte("details")), new(bytesValue))
	if d := status.Convert(err).Details(); len(d) != 1 || d[0].(*errdetails.ErrorInfo).Reason != "why" {
		t.Errorf("the details are %v", d)
	}
	cancelled, cancel := context.WithCancel(ctx)
	go func() {
		<-began
		cancel()
	}()
	if _, err := say.Call(cancelled, c, wrapperspb.Bytes([]byte("wait"))); anser.CodeOf(err) != anser.Canceled {
		t.Errorf("a call that is cancelled: %v", err)
	}
	<-ended
	if err := c.Send(ctx, "test.Echo.Say", payload(1)); err != nil {
		t.Errorf("a message: %v", err)
	}
	_, err = say.Call(ctx, c, payload(1), anser.IdempotencyKey("k"))
	if anser.CodeOf(err) != anser.Unimplemented {
		t.Errorf("a call with an idempotency key: %v", err)
	}
}

// Compressed messages go both ways.
func TestOutCompression(t *testing.T) {
	var seen atomic.Int64
	e := &echo{}
	_, address := stockServer(t, e.add, grpc.StatsHandler(sizes{&seen}))
	c := dialOut(t, address, anser.Compress(compress.Gzip()))
	out, err := say.Call(minute(t), c, payload(200_000))
	if err != nil || len(out.Value) != 200_000 {
		t.Fatalf("%d bytes, %v", len(out.GetValue()), err)
	}
	if n := seen.Load(); n == 0 || n > 20_000 {
		t.Errorf("%d bytes were on the wire for 400,000", n)
	}
}

// With TLS the server must offer HTTP/2, and sees the credential of the client.
func TestOutTLSAndCredentials(t *testing.T) {
	web := httptest.NewUnstartedServer(nil)
	web.StartTLS() // for its certificate
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	e := &echo{unary: func(ctx context.Context, _ *bytesValue) (*bytesValue, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		p, _ := peer.FromContext(ctx)
		_, secure := p.AuthInfo.(credentials.TLSInfo)
		return wrapperspb.Bytes(fmt.Appendf(nil, "%q %v", md["authorization"], secure)), nil
	}}
	_, address := stockServer(t, e.add, grpc.Creds(credentials.NewServerTLSFromCert(&web.TLS.Certificates[0])))
	config := &tls.Config{RootCAs: roots, ServerName: "example.com"}
	c := dialOut(t, address, anser.TLS(config), auth.Token("open-sesame"))
	out, err := say.Call(minute(t), c, payload(1))
	if want := `["Bearer open-sesame"] true`; err != nil || string(out.Value) != want {
		t.Errorf("the handler has seen %s (%v)", out.GetValue(), err)
	}
	only := dialOut(t, strings.TrimPrefix(web.URL, "https://"), anser.TLS(config)) // HTTP/1.1 only
	if _, err := say.Call(minute(t), only, payload(1), anser.WithFailMode(anser.Failfast)); err == nil || !strings.Contains(err.Error(), "does not offer HTTP/2 by ALPN") && !strings.Contains(err.Error(), "no application protocol") {
		t.Errorf("a server without HTTP/2: %v", err)
	}
}

// A client that pings often does not lose its connection to a server that forbids it.
func TestOutKeepalive(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	accepted := atomic.Int32{}
	_, address := stockServer(t, new(echo).add, grpc.StatsHandler(connections{&accepted}))
	c := dialOut(t, address, anser.Conns(1), anser.Keepalive(100*time.Millisecond, time.Minute))
	for range 2 {
		if _, err := say.Call(minute(t), c, payload(1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
	}
	if n := accepted.Load(); n != 1 {
		t.Errorf("%d connections were made", n)
	}
}

// A server that answers nothing any more is noticed by a call that waits for it.
func TestOutDeadServer(t *testing.T) {
	began := make(chan struct{}, 1)
	e := &echo{unary: func(ctx context.Context, in *bytesValue) (*bytesValue, error) {
		select {
		case began <- struct{}{}:
		default: // a call before has begun
		}
		<-ctx.Done()
		return in, nil
	}}
	_, address := stockServer(t, e.add)
	through := &proxy{to: address}
	c := dialOut(t, through.start(t), anser.Conns(1), anser.Keepalive(200*time.Millisecond, 200*time.Millisecond))
	failed := make(chan error, 1)
	call := func() {
		_, err := say.Call(minute(t), c, payload(1))
		failed <- err
	}
	go call()
	for runs := false; !runs; {
		select {
		case <-began:
			runs = true
		case <-failed: // the machine answers no ping in time
			go call()
		}
	}
	through.silent.Store(true)
	if err := <-failed; anser.CodeOf(err) != anser.Unavailable {
		t.Errorf("the call ends with %v", err)
	}
}

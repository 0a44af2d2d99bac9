package rpcx_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smallnest/rpcx/protocol"
	"github.com/smallnest/rpcx/server"
	"github.com/smallnest/rpcx/share"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/internal/authority"
	"github.com/anser-rpc/anser/protocols"
)

// Arith is an rpcx service.
type Arith struct {
	ran  atomic.Int64
	wait chan struct{}
}

func (a *Arith) Mul(_ context.Context, in *Args, out *Reply) error {
	a.ran.Add(1)
	out.C = in.A * in.B
	return nil
}

func (a *Arith) Fail(context.Context, *Args, *Reply) error {
	a.ran.Add(1)
	return errors.New("no luck today")
}

func (a *Arith) Say(ctx context.Context, in *Args, out *Reply) error {
	md := ctx.Value(share.ReqMetaDataKey).(map[string]string)
	back := ctx.Value(share.ResMetaDataKey).(map[string]string)
	back["Tenant"] = md["tenant"]
	back["timed"] = fmt.Sprint(md[share.ServerTimeout] != "")
	back["traced"] = md["traceparent"]
	return nil
}

func (a *Arith) Wait(context.Context, *Args, *Reply) error {
	a.ran.Add(1)
	<-a.wait
	return nil
}

func (a *Arith) Text(_ context.Context, in *wrapperspb.StringValue, out *wrapperspb.StringValue) error {
	out.Value = in.Value
	return nil
}

func (a *Arith) Bytes(_ context.Context, in *[]byte, out *[]byte) error {
	*out = append([]byte(nil), *in...)
	return nil
}

// stockServer starts a stock rpcx server.
func stockServer(t *testing.T, change func(*server.Server), opts ...server.OptionFn) (*server.Server, *Arith, string) {
	t.Helper()
	s, a := server.NewServer(opts...), &Arith{wait: make(chan struct{})}
	if err := s.RegisterName("Arith", a, ""); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		s.ServeListener("tcp", l)
		close(served)
	}()
	t.Cleanup(func() {
		s.Close()
		<-served
	})
	return s, a, l.Addr().String()
}

func dial(t *testing.T, target string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial(target, append([]anser.DialOption{protocols.RPCX(), anser.Logger(slog.New(slog.DiscardHandler))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCallOut(t *testing.T) {
	_, a, addr := stockServer(t, nil)
	for name, opts := range map[string][]anser.DialOption{
		"default": nil, "MessagePack": {anser.Codecs(msgpack.New())}, "gzip": {anser.Compress(compress.Gzip())},
	} {
		c := dial(t, "rpcx://"+addr, opts...)
		out, err := anser.Call[Reply](within(t), c, "Arith.Mul", &Args{7, 8})
		if err != nil || out.C != 56 {
			t.Errorf("%s: %v, %v", name, out, err)
		}
		large := strings.Repeat("anser ", 10_000)
		text, err := anser.Call[wrapperspb.StringValue](within(t), c, "Arith.Text", wrapperspb.String(large))
		if err != nil || text.Value != large {
			t.Errorf("%s: protobuf: %v", name, err)
		}
		b := []byte(large)
		raw, err := anser.Call[[]byte](within(t), c, "Arith.Bytes", &b)
		if err != nil || string(*raw) != large {
			t.Errorf("%s: raw: %v", name, err)
		}
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				out, err := anser.Call[Reply](within(t), c, "Arith.Mul", &Args{i, 3})
				if err != nil || out.C != 3*i {
					t.Errorf("%s: %v, %v", name, out, err)
				}
			})
		}
		all.Wait()
	}
	before := a.ran.Load()
	c := dial(t, "rpcx://"+addr)
	if err := c.Send(within(t), "Arith.Mul", &Args{1, 1}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); a.ran.Load() == before && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if a.ran.Load() != before+1 {
		t.Error("the message did not arrive")
	}
}

func TestMetadataOut(t *testing.T) {
	_, _, addr := stockServer(t, nil)
	c := dial(t, "rpcx://"+addr)
	var back anser.Metadata
	if _, err := anser.Call[Reply](anser.WithMetadata(within(t), anser.Metadata{"tenant": "blue"}), c, "Arith.Say", &Args{}, anser.Trailer(&back)); err != nil {
		t.Fatal(err)
	}
	if back["tenant"] != "blue" || back["timed"] != "true" {
		t.Errorf("%v", back)
	}
}

// What a server says of an error decides whether the call may be made again.
func TestErrorsOut(t *testing.T) {
	_, a, addr := stockServer(t, nil)
	_, _, limited := stockServer(t, func(s *server.Server) { s.Plugins.Add(noMore{}) })
	for _, row := range []struct {
		addr, method string
		code         anser.Code
		outcome      anser.Outcome
		text         string
	}{
		{addr, "Arith.Fail", anser.Unknown, anser.Executed, "no luck today"},
		{addr, "Arith.Div", anser.Unimplemented, anser.Refused, "rpcx: can't find method Div"},
		{addr, "Maths.Mul", anser.Unimplemented, anser.Refused, "rpcx: can't find service Maths"},
		{limited, "Arith.Mul", anser.ResourceExhausted, anser.Refused, "request reached rate limit"},
	} {
		_, err := anser.Call[Reply](within(t), dial(t, "rpcx://"+row.addr), row.method, &Args{1, 2})
		e, ok := errors.AsType[*anser.Error](err)
		if !ok || e.Code != row.code || e.Outcome != row.outcome || !strings.Contains(e.Message, row.text) {
			t.Errorf("%s: %v (%+v)", row.method, err, e)
		}
	}
	if n := a.ran.Load(); n != 1 {
		t.Errorf("the method that fails ran %d times", n)
	}
	c := dial(t, "rpcx://"+addr)
	if _, err := anser.Call[Reply](within(t), c, "Arith.Mul", &Args{1, 2}, anser.IdempotencyKey("key-0123456789")); err == nil || !strings.Contains(err.Error(), "rpcx servers do not remember") {
		t.Errorf("a key: %v", err)
	}
}

// noMore refuses every request as rpcx's limiters do.
type noMore struct{}

func (noMore) PostReadRequest(context.Context, *protocol.Message, error) error {
	return server.ErrReqReachLimit
}

// A connection that is lost ends its calls as Unknown, and the next call goes to another server.
func TestLostServer(t *testing.T) {
	s, a, one := stockServer(t, nil)
	c := dial(t, "rpcx://"+one)
	failed := make(chan error, 1)
	go func() {
		_, err := anser.Call[Reply](within(t), c, "Arith.Wait", &Args{})
		failed <- err
	}()
	for a.ran.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	close(a.wait)
	if e, ok := errors.AsType[*anser.Error](<-failed); !ok || e.Outcome != anser.OutcomeUnknown || e.Code != anser.Unavailable {
		t.Errorf("%+v", e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{})
	if e, ok := errors.AsType[*anser.Error](err); !ok || e.Outcome != anser.NotSent {
		t.Errorf("with no server: %v", err)
	}
}

func TestTokenOut(t *testing.T) {
	_, _, addr := stockServer(t, func(s *server.Server) {
		s.AuthFunc = func(_ context.Context, _ *protocol.Message, token string) error {
			if token != "carol-0123456789abcdef" {
				return errors.New("invalid token")
			}
			return nil
		}
	})
	out, err := anser.Call[Reply](within(t), dial(t, "rpcx://"+addr, auth.Token("carol-0123456789abcdef"), anser.InsecureCredentials()), "Arith.Mul", &Args{7, 8})
	if err != nil || out.C != 56 {
		t.Errorf("%v, %v", out, err)
	}
	if _, err := anser.Call[Reply](within(t), dial(t, "rpcx://"+addr), "Arith.Mul", &Args{7, 8}); err == nil || !strings.Contains(err.Error(), "invalid token") {
		t.Errorf("without a token: %v", err)
	}
}

func TestTLSOut(t *testing.T) {
	ca := authority.New("rpcx test")
	s := server.NewServer()
	s.RegisterName("Arith", new(Arith), "")
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{ca.Issue()}})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { s.ServeListener("tcp", l); close(served) }()
	defer func() { s.Close(); <-served }()
	out, err := anser.Call[Reply](within(t), dial(t, "rpcx://"+l.Addr().String(), anser.TLS(&tls.Config{RootCAs: ca.Pool})), "Arith.Mul", &Args{7, 8})
	if err != nil || out.C != 56 {
		t.Errorf("%v, %v", out, err)
	}
}

// An Anser client calls an Anser server over rpcx, and learns all of an error.
func TestAnserOverRPCX(t *testing.T) {
	s, addr := serve(t)
	anser.Handle(s, "Arith.Refuse", func(context.Context, *Args) (*Reply, error) {
		return nil, anser.Refuse(anser.NotFound, "there is none")
	})
	c := dial(t, "rpcx://"+addr)
	out, err := anser.Call[Reply](within(t), c, "Arith.Mul", &Args{7, 8})
	if err != nil || out.C != 56 {
		t.Errorf("%v, %v", out, err)
	}
	_, err = anser.Call[Reply](within(t), c, "Arith.Refuse", &Args{})
	if e, ok := errors.AsType[*anser.Error](err); !ok || e.Code != anser.NotFound || e.Outcome != anser.Refused || e.Message != "there is none" {
		t.Errorf("%+v", e)
	}
}

// A server that accepts a connection and does not serve it gets no call.
func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			nc.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			nc.Close()
		}
	}()
	_, err = anser.Call[Reply](within(t), dial(t, "rpcx://"+l.Addr().String()), "Arith.Mul", &Args{7, 8}, anser.WithFailMode(anser.Failfast))
	if e, ok := errors.AsType[*anser.Error](err); !ok || e.Outcome != anser.NotSent || !strings.Contains(err.Error(), "is it an rpcx server?") {
		t.Errorf("%v", err)
	}
}

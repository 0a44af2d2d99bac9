package rpcx_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smallnest/rpcx/client"
	"github.com/smallnest/rpcx/protocol"
	"github.com/smallnest/rpcx/share"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/authority"
	"github.com/anser-rpc/anser/internal/test/rpcx/rpcxclient"
	"github.com/anser-rpc/anser/protocols"
)

// serve starts an Anser server with all protocols, and returns its address.
func serve(t *testing.T, opts ...anser.ServerOption) (*anser.Server, string) {
	t.Helper()
	s := anser.NewServer(append(opts, protocols.All(), anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler)))...)
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *Args) (*Reply, error) { return &Reply{in.A * in.B}, nil })
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		s.Serve(l)
		close(done)
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return s, l.Addr().String()
}

// stock connects a stock rpcx client.
func stock(t *testing.T, addr, path string, change func(*client.Option)) client.XClient {
	t.Helper()
	d, err := client.NewPeer2PeerDiscovery("tcp@"+addr, "")
	if err != nil {
		t.Fatal(err)
	}
	o := client.DefaultOption
	o.Retries = 1
	if change != nil {
		change(&o)
	}
	c := client.NewXClient(path, client.Failtry, client.RandomSelect, d, o)
	t.Cleanup(func() { c.Close() })
	return c
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestCallGoAndOneway(t *testing.T) {
	s, addr := serve(t)
	noted := make(chan int, 1)
	anser.Handle(s, "Arith.Note", func(_ context.Context, in *Args) (*Reply, error) {
		noted <- in.A
		return &Reply{}, nil
	})
	c := stock(t, addr, "Arith", nil)
	var out Reply
	if err := c.Call(within(t), "Mul", &Args{7, 8}, &out); err != nil || out.C != 56 {
		t.Fatal(out, err)
	}
	out = Reply{}
	call, err := c.Go(within(t), "Mul", &Args{6, 7}, &out, make(chan *client.Call, 1))
	if err != nil {
		t.Fatal(err)
	}
	if done := <-call.Done; done.Error != nil || out.C != 42 {
		t.Fatal(out, done.Error)
	}
	if err := c.Call(within(t), "Note", &Args{A: 5}, nil); err != nil {
		t.Fatal(err)
	}
	if a := <-noted; a != 5 {
		t.Error(a)
	}
}

// Every serialization of rpcx that Anser has, plain and with gzip.
func TestSerializations(t *testing.T) {
	s, addr := serve(t)
	anser.Handle(s, "Echo.Text", func(_ context.Context, in *wrapperspb.StringValue) (*wrapperspb.StringValue, error) { return in, nil })
	anser.Handle(s, "Echo.Bytes", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	anser.Handle(s, "Echo.Plain", func(_ context.Context, in *struct{ Text string }) (*struct{ Text string }, error) { return in, nil })
	large := strings.Repeat("anser ", 1000)
	for _, packed := range []protocol.CompressType{protocol.None, protocol.Gzip} {
		with := func(s protocol.SerializeType) client.XClient {
			return stock(t, addr, "Echo", func(o *client.Option) { o.SerializeType, o.CompressType = s, packed })
		}
		for _, kind := range []protocol.SerializeType{protocol.MsgPack, protocol.JSON} {
			var out struct{ Text string }
			if err := with(kind).Call(within(t), "Plain", &struct{ Text string }{large}, &out); err != nil || out.Text != large {
				t.Errorf("%v %v: %d bytes, %v", kind, packed, len(out.Text), err)
			}
		}
		var text wrapperspb.StringValue
		if err := with(protocol.ProtoBuffer).Call(within(t), "Text", wrapperspb.String(large), &text); err != nil || text.Value != large {
			t.Errorf("protobuf %v: %d bytes, %v", packed, len(text.Value), err)
		}
		var b []byte
		if err := with(protocol.SerializeNone).Call(within(t), "Bytes", []byte(large), &b); err != nil || string(b) != large {
			t.Errorf("raw %v: %d bytes, %v", packed, len(b), err)
		}
	}
	c := client.NewClient(client.Option{SerializeType: protocol.Thrift, ConnectTimeout: time.Second})
	if err := c.Connect("tcp", addr); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := protocol.NewMessage()
	m.SetSerializeType(protocol.Thrift)
	m.ServicePath, m.ServiceMethod = "Echo", "Plain"
	if _, _, err := c.SendRaw(within(t), m); err == nil || !strings.Contains(err.Error(), "Thrift is not served: use MessagePack") {
		t.Errorf("Thrift: %v", err)
	}
}

// kinds has the kinds of fields that both MessagePack codecs have.
type kinds struct {
	I8    int8
	I64   int64
	U64   uint64
	F32   float32
	F64   float64
	B     bool
	Bytes []byte
	When  time.Time
	Wait  time.Duration
	List  []inner
	Map   map[string]int
	Ptr   *inner
	Nil   *inner
	Any   any
}

type inner struct {
	N    int64
	Text string `msgpack:"text"`
}

func TestMessagePackOfRPCX(t *testing.T) {
	s, addr := serve(t)
	anser.Handle(s, "Echo.All", func(_ context.Context, in *kinds) (*kinds, error) { return in, nil })
	callKinds(t, addr)
}

// callKinds calls Echo.All with all kinds, in MessagePack.
func callKinds(t *testing.T, addr string) {
	t.Helper()
	in := &kinds{
		-8, -1 << 60, 1 << 63, 1.5, 2.5, true,
		[]byte{0, 255},
		time.Unix(1_700_000_000, 5).UTC(), time.Second,
		[]inner{{1, "a"}, {-2, "b"}},
		map[string]int{"x": 1},
		&inner{N: 9}, nil, "any",
	}
	var out kinds
	if err := stock(t, addr, "Echo", nil).Call(within(t), "All", in, &out); err != nil {
		t.Fatal(err)
	}
	if out.I64 != in.I64 || out.U64 != in.U64 || out.F32 != in.F32 || string(out.Bytes) != string(in.Bytes) || !out.When.Equal(in.When) ||
		out.Wait != in.Wait || len(out.List) != 2 || out.List[1] != in.List[1] || out.Map["x"] != 1 || out.Ptr.N != 9 || out.Nil != nil || out.Any != "any" || out.I8 != -8 {
		t.Errorf("%+v, want %+v", out, in)
	}
}

func TestMetadata(t *testing.T) {
	s, addr := serve(t)
	seen := make(chan anser.Metadata, 1)
	anser.Handle(s, "Arith.Say", func(ctx context.Context, in *Args) (*Reply, error) {
		seen <- anser.MetadataFrom(ctx)
		deadline, ok := ctx.Deadline()
		if left := time.Until(deadline); !ok || left > time.Minute || left < 20*time.Second {
			t.Errorf("the deadline is in %v", left)
		}
		return &Reply{1}, anser.SetTrailer(ctx, "served-by", "anser")
	})
	back := map[string]string{}
	ctx := context.WithValue(within(t), share.ReqMetaDataKey, map[string]string{"Tenant": "blue", "traceparent": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"})
	ctx = context.WithValue(ctx, share.ResMetaDataKey, back)
	var out Reply
	if err := stock(t, addr, "Arith", nil).Call(ctx, "Say", &Args{}, &out); err != nil {
		t.Fatal(err)
	}
	if md := <-seen; md["tenant"] != "blue" || len(md) != 1 {
		t.Errorf("the handler has %v", md)
	}
	if back["served-by"] != "anser" {
		t.Errorf("the client has %v", back)
	}
}

func TestErrors(t *testing.T) {
	s, addr := serve(t, anser.MaxMessage(1<<20))
	anser.Handle(s, "Arith.Fail", func(context.Context, *Args) (*Reply, error) { return nil, errors.New("no luck today") })
	anser.Handle(s, "Arith.Panic", func(context.Context, *Args) (*Reply, error) { panic("secret") })
	c := stock(t, addr, "Arith", nil)
	for method, want := range map[string]string{
		"Fail": "no luck today", "Panic": "panicked", "Muls": `method "Arith.Muls" is not served here`,
	} {
		back := map[string]string{}
		err := c.Call(context.WithValue(within(t), share.ResMetaDataKey, back), method, &Args{}, &Reply{})
		var service client.ServiceError
		if !errors.As(err, &service) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", method, err, want)
		}
	}
	if err := c.Call(within(t), "Mul", &[]string{"x"}, &Reply{}); err == nil || !strings.Contains(err.Error(), "decode the message with msgpack") {
		t.Errorf("an array for a struct: %v", err)
	}
	// A message that is too large is refused, and the connection goes on.
	big := strings.Repeat("x", 2<<20)
	if err := c.Call(within(t), "Mul", &struct{ A string }{big}, &Reply{}); err == nil || !strings.Contains(err.Error(), "over the limit of 1048576: raise it with anser.MaxMessage") {
		t.Errorf("2 MiB: %v", err)
	}
	var out Reply
	if err := c.Call(within(t), "Mul", &Args{2, 3}, &out); err != nil || out.C != 6 {
		t.Error(out, err)
	}
	if n := s.Stats().Conns; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestHeartbeats(t *testing.T) {
	s, addr := serve(t)
	c := stock(t, addr, "Arith", func(o *client.Option) {
		o.Heartbeat, o.HeartbeatInterval, o.MaxWaitForHeartbeat = true, 5*time.Millisecond, time.Minute
	})
	var beats atomic.Int64
	plugins := client.NewPluginContainer()
	plugins.Add(&beatCounter{&beats})
	c.SetPlugins(plugins)
	var out Reply
	if err := c.Call(within(t), "Mul", &Args{2, 3}, &out); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); beats.Load() < 5 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if beats.Load() < 5 {
		t.Errorf("%d heartbeats were answered", beats.Load())
	}
	if n := s.Stats().Conns; n != 1 {
		t.Errorf("%d connections: an unanswered heartbeat closes one", n)
	}
}

type beatCounter struct{ n *atomic.Int64 }

func (b *beatCounter) ClientAfterDecode(m *protocol.Message) error {
	if m.IsHeartbeat() && m.MessageType() == protocol.Response {
		b.n.Add(1)
	}
	return nil
}

func TestToken(t *testing.T) {
	const token = "carol-0123456789abcdef"
	tokens, err := auth.NewTokens(auth.Grant{Subject: "carol", SHA256: auth.Digest(token)})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Subjects: []string{"carol"}, Methods: []string{"Arith.Mul"}}}})
	if err != nil {
		t.Fatal(err)
	}
	s, addr := serve(t, anser.Authenticate(tokens), anser.Authorize(policy))
	anser.Handle(s, "Arith.Other", func(_ context.Context, in *Args) (*Reply, error) { return &Reply{}, nil })
	for shown, want := range map[string]string{
		token: "", "Bearer " + token: "", "guess": "the credential is not accepted", "": "unauthenticated",
	} {
		c := stock(t, addr, "Arith", nil)
		if shown != "" {
			c.Auth(shown)
		}
		var out Reply
		err := c.Call(within(t), "Mul", &Args{7, 8}, &out)
		if want == "" && (err != nil || out.C != 56) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v, want %q", shown, out, err, want)
		}
		if want == "" {
			if err := c.Call(within(t), "Other", &Args{}, &out); err == nil {
				t.Error("a method that is not allowed is called")
			}
		}
	}
}

func TestTLS(t *testing.T) {
	a := authority.New("rpcx test")
	_, addr := serve(t, anser.TLS(&tls.Config{Certificates: []tls.Certificate{a.Issue()}}))
	c := stock(t, addr, "Arith", func(o *client.Option) { o.TLSConfig = &tls.Config{RootCAs: a.Pool} })
	var out Reply
	if err := c.Call(within(t), "Mul", &Args{7, 8}, &out); err != nil || out.C != 56 {
		t.Fatal(out, err)
	}
}

// During a drain a client gets all replies, and calls another server then: no call fails.
func TestDrain(t *testing.T) {
	running, release := make(chan struct{}, 100), make(chan struct{})
	slow := func(s *anser.Server) {
		anser.Handle(s, "Arith.Slow", func(context.Context, *Args) (*Reply, error) {
			running <- struct{}{}
			<-release
			return &Reply{1}, nil
		})
	}
	first, one := serve(t)
	second, two := serve(t)
	slow(first)
	slow(second)
	list := rpcxclient.NewServers([]*client.KVPair{{Key: "tcp@" + one}, {Key: "tcp@" + two}})
	// A client for each goroutine: rpcx's are not free of races.
	each := func(f func(c client.XClient)) func() {
		return func() {
			c := rpcxclient.New("Arith", client.Failover, client.RoundRobin, list)
			defer c.Close()
			f(c)
		}
	}
	mul := func(c client.XClient) {
		var out Reply
		if err := c.Call(within(t), "Mul", &Args{7, 8}, &out); err != nil || out.C != 56 {
			t.Errorf("a call has failed: %v, %v", out, err)
		}
	}
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(each(func(c client.XClient) {
			mul(c) // at the first server
			mul(c)
			var out Reply
			if err := c.Call(within(t), "Slow", &Args{}, &out); err != nil || out.C != 1 {
				t.Errorf("a call that ran during the drain: %v, %v", out, err)
			}
		}))
	}
	for range 10 {
		<-running
	}
	over := make(chan struct{})
	var going atomic.Int64
	for range 10 {
		calls.Go(each(func(c client.XClient) {
			for i := 0; ; i++ {
				if mul(c); i == 3 {
					going.Add(1)
				}
				select {
				case <-over:
					return
				default:
				}
			}
		}))
	}
	for going.Load() < 10 {
		time.Sleep(time.Millisecond)
	}
	list.Update([]*client.KVPair{{Key: "tcp@" + two}}) // as a registry does before a server stops
	stopped := make(chan error, 1)
	go func() { stopped <- first.Shutdown(within(t)) }()
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	err := <-stopped
	close(over)
	calls.Wait()
	if err != nil {
		t.Error(err)
	}
}

// A client that breaks the protocol is counted, and its connection closed.
func TestBroken(t *testing.T) {
	s, addr := serve(t)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.Write([]byte("\x08\x00\x00\x30\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x10\xff\xff\xff\xff"))
	nc.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := nc.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes are answered", n)
	}
	for deadline := time.Now().Add(time.Minute); s.Stats().Closed["BAD_FRAME"] == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := s.Stats().Closed["BAD_FRAME"]; n != 1 {
		t.Errorf("%d connections are counted", n)
	}
}

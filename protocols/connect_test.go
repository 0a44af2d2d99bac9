package protocols_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/protocols"
)

type phrase = wrapperspb.StringValue

const (
	say  anser.Method[phrase, phrase]       = "test.Echo.Say"
	chat anser.StreamMethod[phrase, phrase] = "test.Echo.Chat"
)

// serveEcho starts a server with a method and a stream that return what they get.
func serveEcho(t *testing.T, opts ...anser.ServerOption) (*anser.Server, string) {
	t.Helper()
	s, addr := serve(t, opts...)
	say.Handle(s, func(ctx context.Context, in *phrase) (*phrase, error) {
		md := anser.MetadataFrom(ctx)
		switch in.Value {
		case "refuse":
			return nil, anser.Errorf(anser.NotFound, "no %s here", md["tenant"])
		case "wait":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		anser.SetTrailer(ctx, "last", "trailer")
		return in, nil
	})
	chat.Handle(s, func(_ context.Context, st *anser.Stream[phrase, phrase]) error {
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
	})
	return s, addr
}

// dialWeb connects a client to a server that is not one of Anser.
func dialWeb(t *testing.T, target string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial(target, append([]anser.DialOption{anser.NoSnapshot()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// webClients are the ways in which the Anser client calls Connect and gRPC-Web servers.
var webClients = map[string]anser.DialOption{
	"gRPC":    protocols.GRPC(),
	"connect": protocols.Connect(), "connect with HTTP/2": protocols.Connect(protocols.UnencryptedHTTP2()),
	"connect with GET": protocols.Connect(protocols.CallWithGet("no.such.Method")),
	"gRPC-Web":         protocols.GRPCWeb(), "gRPC-Web with HTTP/2": protocols.GRPCWeb(protocols.UnencryptedHTTP2()),
}

func TestWebClients(t *testing.T) {
	_, addr := serveEcho(t)
	for name, transport := range webClients {
		t.Run(name, func(t *testing.T) {
			scheme := "http://"
			if name == "gRPC" {
				scheme = "grpc://"
			}
			c := dialWeb(t, scheme+addr, transport)
			var trailer anser.Metadata
			out, err := say.Call(t.Context(), c, wrapperspb.String("hello"), anser.Trailer(&trailer))
			if err != nil || out.Value != "hello" || trailer["last"] != "trailer" {
				t.Errorf("%v, %v, trailers %v", out, err, trailer)
			}
			ctx := anser.WithMetadata(t.Context(), anser.Metadata{"tenant": "tea"})
			_, err = say.Call(ctx, c, wrapperspb.String("refuse"))
			if e, ok := errors.AsType[*anser.Error](err); !ok || e.Code != anser.NotFound || e.Message != "no tea here" || e.Outcome != anser.Executed {
				t.Errorf("the error is %#v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := say.Call(ctx, c, wrapperspb.String("wait")); anser.CodeOf(err) != anser.DeadlineExceeded {
				t.Errorf("a call without an answer: %v", err)
			}
			in, err := anser.Call[reply](t.Context(), c, "Arith.Mul", &args{7, 8}, anser.Codec(new(codec.JSON)))
			if err != nil || in.C != 56 {
				t.Errorf("plain structs: %v, %v", in, err)
			}
			if _, err := anser.Call[reply](t.Context(), c, "Arith.Mul", &args{7, 8}); anser.CodeOf(err) != anser.Unimplemented {
				t.Errorf("MessagePack: %v", err)
			}
			if _, err := say.Call(t.Context(), c, new(phrase), anser.IdempotencyKey("k")); anser.CodeOf(err) != anser.Unimplemented {
				t.Errorf("an idempotency key: %v", err)
			}
			if err := c.Send(t.Context(), string(say), wrapperspb.String("oneway")); err != nil {
				t.Errorf("a message: %v", err)
			}
		})
	}
}

// Streams in both directions over HTTP/2, with windows that are smaller than the messages, and many
// at once.
func TestWebStreams(t *testing.T) {
	_, addr := serveEcho(t)
	for _, transport := range []anser.Transports{protocols.Connect(protocols.UnencryptedHTTP2()), protocols.GRPCWeb(protocols.UnencryptedHTTP2())} {
		c := dialWeb(t, "http://"+addr, transport, anser.FlowControlWindows(16<<10, 32<<10))
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				st, err := chat.Open(t.Context(), c)
				if err != nil {
					t.Error(err)
					return
				}
				for _, size := range []int{0, 1, 5_000, 16 << 10, 100_000} {
					if err := st.Send(wrapperspb.String(strings.Repeat("x", size))); err != nil {
						t.Error(err)
					}
					if out, err := st.Recv(); err != nil || len(out.Value) != size {
						t.Errorf("a message of %d bytes: %v", size, err)
					}
				}
				st.CloseSend()
				if _, err := st.Recv(); err != io.EOF {
					t.Errorf("the stream ends with %v", err)
				}
			})
		}
		all.Wait()
	}
}

// A reader that does not read holds up the server, and no other stream.
func TestWebReaderThatWaits(t *testing.T) {
	_, addr := serveEcho(t)
	c := dialWeb(t, "http://"+addr, protocols.Connect(protocols.UnencryptedHTTP2()), anser.FlowControlWindows(16<<10, 1<<20))
	slow, err := chat.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	block := wrapperspb.String(strings.Repeat("x", 10_000))
	sent := make(chan int)
	stop := make(chan struct{})
	go func() {
		n := 0
		for ; n < 1000 && slow.Send(block) == nil; n++ {
		}
		slow.CloseSend()
		<-stop
		sent <- n
	}()
	for range 100 {
		if _, err := say.Call(t.Context(), c, wrapperspb.String("x")); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, err := range slow.All() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	close(stop)
	if m := <-sent; n != m || n != 1000 {
		t.Errorf("%d messages were received of %d", n, m)
	}
}

// With https:// the server chooses the version of HTTP; a credential is shown with each call.
func TestWebTLSAndCredentials(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var seen struct {
			sync.Mutex
			version int
			token   string
		}
		web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen.Lock()
			seen.version, seen.token = r.ProtoMajor, r.Header.Get("Authorization")
			seen.Unlock()
			w.Header().Set("Content-Type", "application/proto")
		}))
		web.EnableHTTP2 = http2
		web.StartTLS()
		defer web.Close()
		config := web.Client().Transport.(*http.Transport).TLSClientConfig
		c := dialWeb(t, web.URL, protocols.Connect(), anser.TLS(config), auth.Token("open-sesame"))
		if _, err := say.Call(t.Context(), c, wrapperspb.String("x")); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 1, true: 2}[http2]; seen.version != want || seen.token != "Bearer open-sesame" {
			t.Errorf("the server has seen HTTP/%d with %q", seen.version, seen.token)
		}
		// Without its authority the connection fails, and says why.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stranger := dialWeb(t, web.URL, protocols.Connect())
		if _, err := say.Call(ctx, stranger, new(phrase)); err == nil || !strings.Contains(err.Error(), "x509") {
			t.Errorf("a server with an unknown certificate: %v", err)
		}
	}
}

// Answers that no good server gives are errors of their call, and of no other.
func TestWebHostileServers(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	rows := []struct {
		name string
		code anser.Code
		out  func(w http.ResponseWriter)
	}{
		{"a page", anser.Unknown, func(w http.ResponseWriter) { io.WriteString(w, "<html>") }},
		{"no page", anser.Unimplemented, func(w http.ResponseWriter) { http.Error(w, "no", http.StatusNotFound) }},
		{"a proxy without its server", anser.Unavailable, func(w http.ResponseWriter) { http.Error(w, "no", http.StatusBadGateway) }},
		{"an error of another shape", anser.Internal, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			io.WriteString(w, `[1,2`)
		}},
		{"a code that does not exist", anser.Unavailable, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(503)
			io.WriteString(w, `{"code":"ok"}`)
		}},
		{"a body that is cut off", anser.Unavailable, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/proto")
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "x")
		}},
		{"a compression that was not asked for", anser.Internal, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/proto")
			w.Header().Set("Content-Encoding", "gzip")
		}},
		{"a reply over the limit", anser.ResourceExhausted, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/proto")
			io.WriteString(w, long)
		}},
		{"a connection that is cut", anser.Unavailable, func(w http.ResponseWriter) {
			nc, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				nc.Close()
			}
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), "good") {
					w.Header().Set("Content-Type", "application/proto")
					return
				}
				row.out(w)
			}))
			defer web.Close()
			c := dialWeb(t, web.URL, protocols.Connect(), anser.MaxMessage(64<<10))
			if _, err := say.Call(t.Context(), c, wrapperspb.String("bad"), anser.Attempts(1)); anser.CodeOf(err) != row.code {
				t.Errorf("the call fails with %v, want the code %v", err, row.code)
			}
			if _, err := say.Call(t.Context(), c, wrapperspb.String("good")); err != nil {
				t.Errorf("the call after it: %v", err)
			}
		})
	}
}

// Streams that break the framing of Connect and gRPC-Web fail.
func TestWebHostileStreams(t *testing.T) {
	for _, web := range []bool{false, true} {
		kind, transport := "application/connect+proto", protocols.Connect()
		if web {
			kind, transport = "application/grpc-web+proto", protocols.GRPCWeb()
		}
		for body, code := range map[string]anser.Code{
			"":                             anser.Internal, // no end
			"\x00\x00\x00":                 anser.Internal,
			"\x00\x00\x00\x00\x09ab":       anser.Internal,
			"\x00\x7f\xff\xff\xff":         anser.ResourceExhausted,
			"\x01\x00\x00\x00\x00":         anser.Internal,
			"\x40\x00\x00\x00\x00":         anser.Internal,
			"\x02\x00\x00\x00\x01{":        anser.Internal,
			"\x02\x00\x00\x00\x02{}more":   anser.Internal,
			"\x80\x00\x00\x00\x03abc":      anser.Internal,
			"\x80\x00\x00\x00\x06a: b\r\n": anser.Internal,
			"\x02\x00\x00\x00\x2f" + `{"error":{"code":"aborted","message":"enough"}} `: map[bool]anser.Code{false: anser.Aborted, true: anser.Internal}[web],
		} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", kind)
				io.WriteString(w, body)
			}))
			c := dialWeb(t, server.URL, transport)
			st, err := chat.Open(t.Context(), c)
			if err == nil {
				st.CloseSend()
				_, err = st.Recv()
			}
			if anser.CodeOf(err) != code {
				t.Errorf("%s: %q: the stream ends with %v, want the code %v", kind, body, err, code)
			}
			c.Close()
			server.Close()
		}
	}
}

// Servers are replaced one after the other, and another one takes the calls.
func TestWebServerEnds(t *testing.T) {
	first, a := serveEcho(t)
	_, b := serveEcho(t)
	c := dialWeb(t, "http://"+a+","+b, protocols.Connect(protocols.UnencryptedHTTP2()))
	for i := range 200 {
		if i == 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := first.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			cancel()
		}
		if _, err := say.Call(t.Context(), c, wrapperspb.String("x")); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	// Nothing listens at this address.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	dead := dialWeb(t, "http://"+l.Addr().String(), protocols.Connect())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = say.Call(ctx, dead, new(phrase))
	if e, ok := errors.AsType[*anser.Error](err); !ok || e.Outcome != anser.NotSent {
		t.Errorf("a call without a server: %v", err)
	}
}

// A caller that gives up ends the request at the server.
func TestWebCancel(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(began)
		<-r.Context().Done()
		close(ended)
	}))
	defer web.Close()
	c := dialWeb(t, web.URL, protocols.Connect())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := say.Call(ctx, c, new(phrase)); anser.CodeOf(err) != anser.Canceled {
		t.Errorf("the call ends with %v", err)
	}
	<-ended
}

// A name that is not valid in a URL is a method that the server does not have.
func TestWebNames(t *testing.T) {
	_, addr := serveEcho(t)
	for _, transport := range []anser.Transports{protocols.Connect(), protocols.GRPCWeb()} {
		c := dialWeb(t, "http://"+addr, transport)
		for _, name := range []string{"a.B.%zz", "a b.c d", "a.B?x=1", "a.B#c", "ä.Ö", "a.B.:c"} {
			if _, err := anser.Call[phrase](t.Context(), c, name, new(phrase)); anser.CodeOf(err) != anser.Unimplemented {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

func TestWebOptions(t *testing.T) {
	for _, transport := range []anser.Transports{protocols.Connect(nil), protocols.GRPCWeb(protocols.CallWithGet("a.B.C"))} {
		if _, err := anser.Dial("http://127.0.0.1:1", transport); err == nil {
			t.Error("a wrong option is not an error")
		}
	}
	// A signature is of Anser's own handshake.
	_, addr := serveEcho(t)
	c := dialWeb(t, "http://"+addr, protocols.Connect(), auth.Sign("ann", auth.NewSecret()), anser.InsecureCredentials())
	if _, err := say.Call(t.Context(), c, new(phrase), anser.WithFailMode(anser.Failfast)); err == nil || !strings.Contains(err.Error(), "use a token") {
		t.Errorf("a call with a signature: %v", err)
	}
}

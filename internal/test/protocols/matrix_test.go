package protocols_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/protocols"
)

var update = flag.Bool("update", false, "write the table of docs/protocols.md")

// Words is the message of the matrix.
type Words struct{ Text string }

// matrixServer serves what the cells of the matrix ask for.
type matrixServer struct {
	direct  string // the address
	address string // of a proxy that counts bytes
	proxy   *proxy

	runs  atomic.Int32
	ended chan struct{} // a call was cancelled
	began chan struct{}
	leave chan struct{}
}

func (m *matrixServer) say(ctx context.Context, in *Words) (*Words, error) {
	switch in.Text {
	case "deadline":
		at, ok := ctx.Deadline()
		return &Words{fmt.Sprint(ok && time.Until(at) < 15*time.Second)}, nil
	case "wait":
		m.began <- struct{}{}
		<-ctx.Done()
		m.ended <- struct{}{}
		return nil, ctx.Err()
	case "linger":
		m.began <- struct{}{}
		<-m.leave
		return in, nil
	case "metadata":
		return &Words{anser.MetadataFrom(ctx)["tenant"]}, nil
	case "trailer":
		return in, anser.SetTrailer(ctx, "last", "trailer")
	case "error":
		detail, err := anypb.New(&errdetails.ErrorInfo{Reason: "why"})
		if err != nil {
			return nil, err
		}
		details, err := proto.Marshal(&spb.Status{Code: int32(anser.Unavailable), Message: "not now", Details: []*anypb.Any{detail}})
		if err != nil {
			return nil, err
		}
		return nil, anser.Errorf(anser.Unavailable, "not now").WithDetails(details).WithRetryAfter(anser.RetryNever)
	case "trace":
		t, _ := anser.TraceFrom(ctx)
		return &Words{hex.EncodeToString(t.TraceID[:])}, nil
	case "count":
		return &Words{fmt.Sprint(m.runs.Add(1))}, nil
	}
	return &Words{strings.ToUpper(in.Text)}, nil
}

// asked is what a call carries.
type asked struct {
	metadata map[string]string
	timeout  time.Duration
	trace    bool
	gzip     bool
	key      string
}

// told is what the caller got.
type told struct {
	text, trailer, code, message, outcome string
	details                               bool
}

// language is one protocol, as a client speaks it.
type language struct {
	name string
	call func(ctx context.Context, m *matrixServer, text string, a asked) told
	// stream makes a stream on which the client and the server send two messages, or one, and returns
	// what has arrived; nil: the protocol has no streams.
	stream func(ctx context.Context, m *matrixServer, client, server bool) string
}

// throughAnser calls with a client of Anser, which speaks the protocol itself.
func throughAnser(name, scheme string, transport func() anser.DialOption) language {
	dial := func(m *matrixServer, opts ...anser.DialOption) (*anser.Client, error) {
		opts = append(opts, silent, anser.NoSnapshot(), anser.Attempts(1), anser.Codec(new(codec.JSON)))
		if transport != nil {
			opts = append(opts, transport())
		}
		return anser.Dial(scheme+m.address, opts...)
	}
	call := func(ctx context.Context, m *matrixServer, text string, a asked) told {
		var opts []anser.DialOption
		if a.gzip {
			opts = append(opts, anser.Compress(compress.Gzip(), anser.Forced))
		}
		c, err := dial(m, opts...)
		if err != nil {
			return told{message: err.Error()}
		}
		defer c.Close()
		md := anser.Metadata{}
		for k, v := range a.metadata {
			md[k] = v
		}
		var call []anser.CallOption
		if a.key != "" && transport == nil {
			call = append(call, anser.IdempotencyKey(a.key))
		} else if a.key != "" {
			md["idempotency-key"] = a.key
		}
		if ctx = anser.WithMetadata(ctx, md); a.trace {
			ctx = anser.WithTrace(ctx, anser.Trace{TraceID: [16]byte{1}, SpanID: [8]byte{2}, Flags: 1})
		}
		if a.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.timeout)
			defer cancel()
		} else {
			call = append(call, anser.Timeout(0))
		}
		var trailer anser.Metadata
		out, err := anser.Call[Words](ctx, c, "test.Matrix.Say", &Words{text}, append(call, anser.Trailer(&trailer))...)
		if e, ok := errors.AsType[*anser.Error](err); ok {
			return told{code: e.Code.String(), message: e.Message, outcome: e.Outcome.String(), details: len(e.Details) > 0}
		}
		return told{text: out.Text, trailer: trailer["last"]}
	}
	stream := func(ctx context.Context, m *matrixServer, client, server bool) string {
		c, err := dial(m)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		st, err := anser.Open[Words, Words](ctx, c, map[[2]bool]string{
			{false, true}: "test.Matrix.Tell", {true, false}: "test.Matrix.Hear", {true, true}: "test.Matrix.Chat",
		}[[2]bool{client, server}])
		if err != nil {
			return err.Error()
		}
		got := ""
		send := func() { _ = st.Send(&Words{"x"}) }
		receive := func() error {
			out, err := st.Recv()
			if err == nil {
				got += out.Text
			}
			return err
		}
		send()
		if client && server { // the second message follows the answer to the first one
			if err := receive(); err != nil {
				return err.Error()
			}
		}
		if client {
			send()
		}
		st.CloseSend()
		for err == nil {
			err = receive()
		}
		if err != io.EOF {
			return err.Error()
		}
		return got
	}
	return language{name, call, stream}
}

// overHTTP makes a call with a POST.
func overHTTP(ctx context.Context, m *matrixServer, path string, body []byte, kind string, a asked) (*http.Response, []byte) {
	if a.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	if a.gzip {
		packed, err := compress.Gzip().Append(nil, body)
		if err != nil {
			return nil, nil
		}
		body = packed
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+m.address+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil
	}
	r.Header.Set("Content-Type", kind)
	for k, v := range a.metadata {
		r.Header.Set(k, v)
	}
	if a.timeout > 0 {
		r.Header.Set("Request-Timeout", fmt.Sprint(a.timeout.Seconds()))
	}
	if a.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	if a.key != "" {
		r.Header.Set("Idempotency-Key", a.key)
	}
	if a.trace {
		r.Header.Set("Traceparent", "00-01000000000000000000000000000000-0200000000000000-01")
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, nil
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	return resp, data
}

// overWebSocket makes a stream in both directions.
func overWebSocket(ctx context.Context, m *matrixServer) string {
	ws, _, err := websocket.Dial(ctx, "ws://"+m.address+"/test.Matrix.Chat", nil)
	if err != nil {
		return err.Error()
	}
	defer ws.CloseNow()
	got := ""
	for range 2 { // the second message follows the answer to the first one
		if err := ws.Write(ctx, websocket.MessageText, []byte(`{"Text":"x"}`)); err != nil {
			return err.Error()
		}
		_, data, err := ws.Read(ctx)
		if err != nil {
			return err.Error()
		}
		var w Words
		_ = json.Unmarshal(data, &w)
		got += w.Text
	}
	_ = ws.Write(ctx, websocket.MessageText, nil)
	if _, _, err := ws.Read(ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		return fmt.Sprint(err)
	}
	return got
}

func plainJSON() language {
	call := func(ctx context.Context, m *matrixServer, text string, a asked) told {
		body, _ := json.Marshal(Words{text})
		resp, data := overHTTP(ctx, m, "/test.Matrix.Say", body, "application/json", a)
		if resp == nil {
			return told{}
		}
		var out struct {
			Text, Code, Detail, Outcome string
			Details                     json.RawMessage
		}
		_ = json.Unmarshal(data, &out)
		return told{out.Text, resp.Header.Get("Trailer-Last"), strings.ReplaceAll(out.Code, "_", " "), out.Detail, out.Outcome, len(out.Details) > 0}
	}
	stream := func(ctx context.Context, m *matrixServer, client, server bool) string {
		if client && server {
			return overWebSocket(ctx, m)
		}
		path, kind, body := "/test.Matrix.Tell", "application/json", `{"Text":"x"}`
		if client {
			path, kind, body = "/test.Matrix.Hear", "application/x-ndjson", `{"Text":"x"}`+"\n"+`{"Text":"x"}`+"\n"
		}
		_, data := overHTTP(ctx, m, path, []byte(body), kind, asked{})
		got := ""
		for dec := json.NewDecoder(bytes.NewReader(data)); ; {
			var w Words
			if dec.Decode(&w) != nil {
				return got
			}
			got += w.Text
		}
	}
	return language{"JSON over HTTP", call, stream}
}

// rpcAnswer is the answer of JSON-RPC 2.0.
type rpcAnswer struct {
	Result Words
	Error  *struct {
		Message string
		Data    struct {
			Code, Outcome string
			Details       json.RawMessage
		}
	}
}

func (a *rpcAnswer) told() told {
	if a.Error == nil {
		return told{text: a.Result.Text}
	}
	return told{code: strings.ReplaceAll(a.Error.Data.Code, "_", " "), message: a.Error.Message, outcome: a.Error.Data.Outcome, details: len(a.Error.Data.Details) > 0}
}

func jsonRPC() language {
	return language{name: "JSON-RPC over HTTP", call: func(ctx context.Context, m *matrixServer, text string, a asked) told {
		body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "test.Matrix.Say", "params": Words{text}})
		resp, data := overHTTP(ctx, m, "/jsonrpc", body, "application/json", a)
		var out rpcAnswer
		if resp == nil {
			return told{}
		}
		if json.Unmarshal(data, &out) != nil {
			return told{message: string(data)}
		}
		answer := out.told()
		answer.trailer = resp.Header.Get("Trailer-Last")
		return answer
	}}
}

// rpcClient calls with a client of net/rpc, which carries the message and nothing else.
func rpcClient(name string, dial func(network, address string) (*rpc.Client, error)) language {
	return language{name: name, call: func(ctx context.Context, m *matrixServer, text string, a asked) told {
		if a.metadata != nil || a.trace || a.gzip || a.key != "" {
			return told{}
		}
		c, err := dial("tcp", m.address)
		if err != nil {
			return told{message: err.Error()}
		}
		defer c.Close()
		if a.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.timeout)
			defer cancel()
		}
		var out Words
		call := c.Go("test.Matrix.Say", &Words{text}, &out, make(chan *rpc.Call, 1))
		select {
		case <-call.Done:
		case <-ctx.Done():
			return told{}
		}
		if call.Error != nil {
			return told{message: call.Error.Error()}
		}
		return told{text: out.Text}
	}}
}

// row is one property of calls.
type row struct {
	name string
	has  func(t *testing.T, l *language, m *matrixServer) bool
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func says(text string, a asked, want func(told) bool) func(*testing.T, *language, *matrixServer) bool {
	return func(t *testing.T, l *language, m *matrixServer) bool {
		return want(l.call(within(t, 20*time.Second), m, text, a))
	}
}

func streams(client, server bool, want string) func(*testing.T, *language, *matrixServer) bool {
	return func(t *testing.T, l *language, m *matrixServer) bool {
		if l.stream == nil {
			return false
		}
		got := l.stream(within(t, 20*time.Second), m, client, server)
		if got != want {
			t.Logf("%s: %q", l.name, got)
		}
		return got == want
	}
}

var rows = []row{
	{"unary calls", says("x", asked{}, func(a told) bool { return a.text == "X" })},
	{"streams of the server", streams(false, true, "xx")},
	{"streams of the client", streams(true, false, "xx")},
	{"streams in both directions", streams(true, true, "xx")},
	{"deadline reaches the handler", says("deadline", asked{timeout: 10 * time.Second}, func(a told) bool { return a.text == "true" })},
	{"a caller that gives up cancels the handler", cancels},
	{"metadata", says("metadata", asked{metadata: map[string]string{"tenant": "tea"}}, func(a told) bool { return a.text == "tea" })},
	{"trailers", says("trailer", asked{}, func(a told) bool { return a.trailer == "trailer" })},
	{"message of an error", says("error", asked{}, func(a told) bool { return strings.Contains(a.message, "not now") })},
	{"code of an error", says("error", asked{}, func(a told) bool { return a.code == "unavailable" })},
	{"details of an error", says("error", asked{}, func(a told) bool { return a.details })},
	{"outcome of an error", says("error", asked{}, func(a told) bool { return a.outcome == "executed" })},
	{"gzip", func(t *testing.T, l *language, m *matrixServer) bool {
		before := m.proxy.up.Load()
		a := l.call(within(t, 20*time.Second), m, strings.Repeat("x", 100_000), asked{gzip: true})
		return len(a.text) == 100_000 && m.proxy.up.Load()-before < 10_000
	}},
	{"idempotency key", func(t *testing.T, l *language, m *matrixServer) bool {
		first := l.call(within(t, 20*time.Second), m, "count", asked{key: strings.ReplaceAll(l.name, " ", "-")}).text
		return first != "" && l.call(within(t, 20*time.Second), m, "count", asked{key: strings.ReplaceAll(l.name, " ", "-")}).text == first
	}},
	{"trace", says("trace", asked{trace: true}, func(a told) bool { return strings.HasPrefix(a.text, "0100") })},
	{"error for a message over the limit", func(t *testing.T, l *language, m *matrixServer) bool {
		a := l.call(within(t, 20*time.Second), m, strings.Repeat("x", 2<<20), asked{})
		return strings.Contains(a.message, "limit") || strings.Contains(a.message, "larger") || strings.Contains(a.message, "exceeds")
	}},
	{"calls in flight end when the server drains", drains},
}

func cancels(t *testing.T, l *language, m *matrixServer) bool {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var call sync.WaitGroup
	call.Go(func() { l.call(ctx, m, "wait", asked{}) })
	<-m.began
	cancel()
	call.Wait()
	select {
	case <-m.ended:
		return true
	case <-time.After(2 * time.Second):
		return false
	}
}

// drains has a server of its own.
func drains(t *testing.T, l *language, _ *matrixServer) bool {
	m, s := startMatrix(t)
	m.address = m.direct // the proxy does not close one direction alone
	var answer told
	var call sync.WaitGroup
	call.Go(func() { answer = l.call(within(t, 20*time.Second), m, "linger", asked{}) })
	<-m.began
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(within(t, 20*time.Second)) }()
	for {
		nc, err := net.Dial("tcp", m.direct)
		if err != nil {
			break // it drains
		}
		nc.Close()
	}
	close(m.leave)
	call.Wait()
	err := <-down
	if err != nil || answer.text != "linger" {
		t.Logf("%s: %+v, %v", l.name, answer, err)
	}
	return err == nil && answer.text == "linger"
}

func startMatrix(t *testing.T) (*matrixServer, *anser.Server) {
	t.Helper()
	m := &matrixServer{ended: make(chan struct{}, 10), began: make(chan struct{}, 10), leave: make(chan struct{})}
	var server *anser.Server
	m.direct = serve(t, func(s *anser.Server) {
		server = s
		anser.Handle(s, "test.Matrix.Say", m.say, anser.Deduplicate())
		anser.ServerStreamMethod[Words, Words]("test.Matrix.Tell").Handle(s, func(_ context.Context, in *Words, out anser.Sender[Words]) error {
			return cmp.Or(out.Send(in), out.Send(in))
		})
		anser.ClientStreamMethod[Words, Words]("test.Matrix.Hear").Handle(s, func(_ context.Context, in anser.Receiver[Words]) (*Words, error) {
			all := new(Words)
			for w, err := range in.All() {
				if err != nil {
					return nil, err
				}
				all.Text += w.Text
			}
			return all, nil
		})
		anser.HandleStream(s, "test.Matrix.Chat", func(_ context.Context, st *anser.Stream[Words, Words]) error {
			for w, err := range st.All() {
				if err != nil {
					return err
				}
				if err := st.Send(w); err != nil {
					return err
				}
			}
			return nil
		})
	}, anser.MaxMessage(1<<20))
	m.proxy = &proxy{to: m.direct}
	m.address = m.proxy.start(t)
	return m, server
}

// What the protocols carry is found by calls, and docs/protocols.md says it. With -update the test
// writes it there.
func TestMatrix(t *testing.T) {
	m, _ := startMatrix(t)
	languages := []language{
		throughAnser("Anser", "", nil),
		throughAnser("gRPC", "grpc://", func() anser.DialOption { return protocols.GRPC() }),
		throughAnser("gRPC-Web", "http://", func() anser.DialOption { return protocols.GRPCWeb(protocols.UnencryptedHTTP2()) }),
		throughAnser("Connect", "http://", func() anser.DialOption { return protocols.Connect(protocols.UnencryptedHTTP2()) }),
		plainJSON(), jsonRPC(), rpcClient("JSON-RPC over TCP", jsonrpc.Dial), rpcClient("net/rpc", rpc.Dial),
	}
	var b strings.Builder
	b.WriteString("|")
	for _, l := range languages {
		b.WriteString(" | " + l.name)
	}
	b.WriteString(" |\n|---" + strings.Repeat("|---", len(languages)) + "|\n")
	for _, r := range rows {
		b.WriteString("| " + r.name)
		for i := range languages {
			if r.has(t, &languages[i], m) {
				b.WriteString(" | yes")
			} else {
				b.WriteString(" | no")
			}
		}
		b.WriteString(" |\n")
	}
	const name, begin, end = "../../../docs/protocols.md", "<!-- matrix: begin -->\n", "<!-- matrix: end -->\n"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	old, tail, ends := strings.Cut(rest, end)
	if !ok || !ends {
		t.Fatalf("%s has no place for the matrix", name)
	}
	if old == b.String() {
		return
	}
	if *update {
		if err := os.WriteFile(name, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s has\n%s\nand it is\n%s\nRun go test -run TestMatrix -update", name, old, &b)
}

package protocols_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

// clients are those of both versions of HTTP.
func clients(t *testing.T) map[string]*http.Client {
	t.Helper()
	one, two := new(http.Transport), new(http.Transport)
	two.Protocols = new(http.Protocols)
	two.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(func() {
		one.CloseIdleConnections()
		two.CloseIdleConnections()
	})
	return map[string]*http.Client{"HTTP/1.1": {Transport: one}, "HTTP/2": {Transport: two}}
}

// send posts a body with headers, which are pairs.
func send(t *testing.T, c *http.Client, url, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A call is a POST of JSON; what goes wrong is a problem of RFC 9457.
func TestPlainHTTP(t *testing.T) {
	s, address := serve(t, anser.MaxMessage(1000))
	anser.Handle(s, "Arith.Div", func(ctx context.Context, in *args) (*reply, error) {
		if in.B == 0 {
			return nil, anser.Errorf(anser.InvalidArgument, "division by %d", in.B).WithDetails([]byte("zero"))
		}
		anser.SetTrailer(ctx, "seen", anser.MetadataFrom(ctx).Get("colour"))
		return &reply{in.A / in.B}, nil
	})
	anser.Handle(s, "Arith.Wait", func(ctx context.Context, _ *args) (*reply, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for version, c := range clients(t) {
		for name, row := range map[string]struct {
			path, body string
			headers    []string
			status     int
			answer     string
		}{
			"call":         {path: "/Arith.Div", body: `{"A":8,"B":2}`, status: 200, answer: `{"C":4}`},
			"error":        {path: "/Arith.Div", body: `{"A":8}`, status: 400, answer: `{"title":"invalid argument","status":400,"detail":"division by 0","code":"invalid_argument","outcome":"executed","details":"emVybw=="}`},
			"no JSON":      {path: "/Arith.Div", body: `{"A":`, status: 400},
			"unknown":      {path: "/Arith.Pow", body: `{}`, status: 404},
			"large":        {path: "/Arith.Div", body: strings.Repeat(" ", 2000), status: 413, answer: `{"title":"resource exhausted","status":413,"detail":"the message is over the server's limit of 1000 bytes (anser.MaxMessage)","code":"resource_exhausted","outcome":"refused"}`},
			"bomb":         {path: "/Arith.Div", body: packed(strings.Repeat(" ", 2000)), headers: []string{"Content-Encoding", "gzip"}, status: 413},
			"misspelt":     {path: "/Arith.Div", body: `{"A":8,"BB":2}`, status: 400, answer: `{"title":"invalid argument","status":400,"detail":"decode the message with json: the message has no member \"BB\": did you mean \"B\"?","code":"invalid_argument","outcome":"refused"}`},
			"no member":    {path: "/Arith.Div", body: `{"A":8,"percentage":2}`, status: 400, answer: `{"title":"invalid argument","status":400,"detail":"decode the message with json: the message has no member \"percentage\": leave it out","code":"invalid_argument","outcome":"refused"}`},
			"two values":   {path: "/Arith.Div", body: `{"A":8,"B":2} {}`, status: 400},
			"text":         {path: "/Arith.Div", body: `{}`, headers: []string{"Content-Type", "text/plain"}, status: 415},
			"deadline":     {path: "/Arith.Wait", body: `{}`, headers: []string{"Request-Timeout", "0.05"}, status: 504},
			"bad deadline": {path: "/Arith.Wait", body: `{}`, headers: []string{"Request-Timeout", "soon"}, status: 400},
			"key":          {path: "/Arith.Div", body: `{}`, headers: []string{"Idempotency-Key", "k"}, status: 501},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				resp := send(t, c, "http://"+address+row.path, row.body, row.headers...)
				got := text(t, resp)
				if resp.StatusCode != row.status || row.answer != "" && got != row.answer {
					t.Errorf("%d %s, want %d %s", resp.StatusCode, got, row.status, row.answer)
				}
				if row.status >= 400 && row.status != 404 && resp.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("the content type is %q", resp.Header.Get("Content-Type"))
				}
			})
		}
		resp := send(t, c, "http://"+address+"/Arith.Div", `{"A":8,"B":2}`, "Colour", "blue")
		if text(t, resp); resp.Header.Get("Trailer-Seen") != "blue" {
			t.Errorf("%s: the headers are %v", version, resp.Header)
		}
	}
}

// packed returns a text in gzip.
func packed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

// The messages of a stream arrive one by one, as soon as they are sent, in the form that the client
// accepts.
func TestPlainHTTPStreams(t *testing.T) {
	next := make(chan struct{})
	s, address := serve(t)
	count := anser.ServerStreamMethod[args, reply]("Arith.Count")
	count.Handle(s, func(_ context.Context, in *args, out anser.Sender[reply]) error {
		for i := range in.A {
			if err := out.Send(&reply{i}); err != nil {
				return err
			}
			<-next
		}
		if in.B > 0 {
			return anser.Errorf(anser.NotFound, "the end")
		}
		return nil
	})
	sum := anser.ClientStreamMethod[args, reply]("Arith.Sum")
	sum.Handle(s, func(_ context.Context, in anser.Receiver[args]) (*reply, error) {
		out := new(reply)
		for m, err := range in.All() {
			if err != nil {
				return nil, err
			}
			out.C += m.A
		}
		return out, nil
	})
	for version, c := range clients(t) {
		for accept, row := range map[string]struct{ parts []string }{
			"":                     {[]string{"{\"C\":0}\n", "{\"C\":1}\n", ""}},
			"application/x-ndjson": {[]string{"{\"C\":0}\n", "{\"C\":1}\n", ""}},
			"application/json":     {[]string{"[{\"C\":0}", ",{\"C\":1}", "]"}},
			"text/event-stream":    {[]string{"data: {\"C\":0}\n\n", "data: {\"C\":1}\n\n", "event: end\ndata: {}\n\n"}},
		} {
			t.Run(version+"/"+accept, func(t *testing.T) {
				resp := send(t, c, "http://"+address+"/Arith.Count", `{"A":2}`, "Accept", accept)
				in := bufio.NewReader(resp.Body)
				for i, part := range row.parts {
					got := make([]byte, len(part))
					if _, err := io.ReadFull(in, got); err != nil || string(got) != part {
						t.Fatalf("part %d is %q, %v, want %q", i, got, err, part)
					}
					if i < 2 {
						next <- struct{}{} // the handler goes on only now
					}
				}
				if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
					t.Errorf("the rest is %q, %v", rest, err)
				}
			})
		}
		resp := send(t, c, "http://"+address+"/Arith.Count", `{"B":1}`)
		if got := text(t, resp); resp.StatusCode != 404 || !strings.Contains(got, `"detail":"the end"`) {
			t.Errorf("%s: an error before the first message is %d %s", version, resp.StatusCode, got)
		}
		go func() { next <- struct{}{} }()
		resp = send(t, c, "http://"+address+"/Arith.Count", `{"A":1,"B":1}`)
		if got := text(t, resp); resp.StatusCode != 200 || !strings.Contains(got, `{"error":{"title":"not found"`) {
			t.Errorf("%s: an error after a message is %d %s", version, resp.StatusCode, got)
		}
		resp = send(t, c, "http://"+address+"/Arith.Sum", "{\"A\":1}\n\n{\"A\":2}\n{\"A\":3}", "Content-Type", "application/x-ndjson")
		if got := text(t, resp); got != "{\"C\":6}\n" {
			t.Errorf("%s: the sum is %q", version, got)
		}
		resp = send(t, c, "http://"+address+"/Arith.Sum", `{"A":1}`)
		if resp.StatusCode != 415 {
			t.Errorf("%s: a stream of the client as one message is %d", version, resp.StatusCode)
		}
	}
}

// The end of a client cancels its call.
func TestPlainHTTPCancel(t *testing.T) {
	ended := make(chan struct{})
	s, address := serveWith(t, anser.Protocols(protocols.HTTP()))
	began := make(chan struct{})
	anser.Handle(s, "Arith.Wait", func(ctx context.Context, _ *args) (*reply, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+address+"/Arith.Wait", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	go func() {
		<-began
		cancel()
	}()
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	if resp, err := transport.RoundTrip(r); err == nil {
		resp.Body.Close()
		t.Errorf("the call succeeds with %d", resp.StatusCode)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the handler still runs")
	}
}

// The examples of the specification of JSON-RPC 2.0, with names that Anser can serve.
func TestJSONRPCExamples(t *testing.T) {
	s, address := serve(t)
	for name, f := range map[string]any{
		"math.subtract": func(_ context.Context, minuend, subtrahend int) (int, error) { return minuend - subtrahend, nil },
		"math.sum":      func(_ context.Context, a, b, c int) (int, error) { return a + b + c, nil },
		"notes.update":  func(_ context.Context, _, _, _, _, _ int) error { return nil },
	} {
		var opts []anser.HandleOption
		if name == "math.subtract" {
			opts = append(opts, anser.Params("(minuend, subtrahend) (difference)"))
		}
		if err := s.RegisterFunc(name, f, opts...); err != nil {
			t.Fatal(err)
		}
	}
	anser.Handle(s, "notes.get", func(context.Context, *anser.None) (*[]any, error) { return &[]any{"hello", 5}, nil })
	for _, row := range []struct{ request, answer string }{
		{`{"jsonrpc": "2.0", "method": "math.subtract", "params": [42, 23], "id": 1}`, `{"jsonrpc":"2.0","result":19,"id":1}`},
		{`{"jsonrpc": "2.0", "method": "math.subtract", "params": [23, 42], "id": 2}`, `{"jsonrpc":"2.0","result":-19,"id":2}`},
		{`{"jsonrpc": "2.0", "method": "math.subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}`, `{"jsonrpc":"2.0","result":19,"id":3}`},
		{`{"jsonrpc": "2.0", "method": "math.subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}`, `{"jsonrpc":"2.0","result":19,"id":4}`},
		{`{"jsonrpc": "2.0", "method": "notes.update", "params": [1,2,3,4,5]}`, ``},
		{`{"jsonrpc": "2.0", "method": "foobar"}`, ``},
		{`{"jsonrpc": "2.0", "method": "foobar", "id": "1"}`, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"method \"foobar\" is not served here: Anser.Methods lists what is","data":{"code":"unimplemented","outcome":"refused"}},"id":"1"}`},
		{`{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]`, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}`},
		{`{"jsonrpc": "2.0", "method": 1, "params": "bar"}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}`},
		{`[{"jsonrpc": "2.0", "method": "math.sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"]`, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}`},
		{`[]`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}`},
		{`[1]`, `[{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}]`},
		{`[1,2,3]`, `[{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null},{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null},{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}]`},
		{
			`[{"jsonrpc":"2.0","method":"math.sum","params":[1,2,4],"id":"1"},{"jsonrpc":"2.0","method":"notes.update","params":[1,2,3,4,5]},{"jsonrpc":"2.0","method":"math.subtract","params":[42,23],"id":"2"},{"foo":"boo"},{"jsonrpc":"2.0","method":"foo.get","params":{"name":"myself"},"id":"5"},{"jsonrpc":"2.0","method":"notes.get","id":"9"}]`,
			`[{"jsonrpc":"2.0","result":7,"id":"1"},{"jsonrpc":"2.0","result":19,"id":"2"},{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null},{"jsonrpc":"2.0","error":{"code":-32601,"message":"method \"foo.get\" is not served here: Anser.Methods lists what is","data":{"code":"unimplemented","outcome":"refused"}},"id":"5"},{"jsonrpc":"2.0","result":["hello",5],"id":"9"}]`,
		},
		{`[{"jsonrpc": "2.0", "method": "notes.update", "params": [1,2,3,4,5]},{"jsonrpc": "2.0", "method": "notes.update", "params": [7,7,7,7,7]}]`, ``},
	} {
		for version, c := range clients(t) {
			resp := send(t, c, "http://"+address+"/jsonrpc", row.request)
			got := text(t, resp)
			want := 200
			if row.answer == "" {
				want = 204
			}
			if got != row.answer || resp.StatusCode != want {
				t.Errorf("%s: %s\nis answered with %d %s\nwant %s", version, row.request, resp.StatusCode, got, row.answer)
			}
			if got != "" && !json.Valid([]byte(got)) {
				t.Errorf("%q is no JSON", got)
			}
		}
		want := withoutTexts(row.answer)
		if !json.Valid([]byte(row.request)) {
			want = "" // a message that is not complete when the stream ends
		}
		if got := withoutTexts(overTCP(t, address, row.request)); got != want {
			t.Errorf("TCP: %s\nis answered with %s\nwant %s", row.request, got, want)
		}
	}
}

// withoutTexts takes the texts and data of errors out of an answer, and sorts the answers of a
// batch, which may have any order.
func withoutTexts(answer string) string {
	answer = regexp.MustCompile(`"message":"(\\.|[^"\\])*"`).ReplaceAllString(answer, `"message":""`)
	answer = regexp.MustCompile(`,"data":\{[^}]*\}`).ReplaceAllString(answer, "")
	var list []json.RawMessage
	if json.Unmarshal([]byte(answer), &list) != nil {
		return answer
	}
	slices.SortFunc(list, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	out, _ := json.Marshal(list)
	return string(out)
}

// overTCP returns what a connection answers to a JSON-RPC request.
func overTCP(t *testing.T, address, request string) string {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(nc, request+"\n")
	nc.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(nc)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(answer))
}

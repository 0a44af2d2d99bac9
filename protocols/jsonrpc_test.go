package protocols_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/protocols"
)

// JSON-RPC over HTTP takes the headers of JSON over HTTP, and says what it does not take.
func TestJSONRPCHeaders(t *testing.T) {
	s, address := serve(t, anser.MaxMessage(200_000))
	anser.Handle(s, "Arith.Time", func(ctx context.Context, in *args) (*string, error) {
		at, ok := ctx.Deadline()
		left := fmt.Sprint(ok && time.Until(at) < time.Minute)
		return &left, anser.SetTrailer(ctx, "seen", "blue")
	})
	anser.Handle(s, "Arith.Wait", func(ctx context.Context, _ *args) (*reply, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	const call = `{"jsonrpc":"2.0","method":"Arith.Mul","params":{"A":7,"B":8},"id":1}`
	one := func(method, params string) string {
		return `{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `,"id":1}`
	}
	large := one("Arith.Mul", `[{"A":`+strings.Repeat(" ", 200_000)+`}]`)
	for version, c := range clients(t) {
		for name, row := range map[string]struct {
			body    string
			headers []string
			status  int
			answer  string // a part of it
		}{
			"deadline":           {one("Arith.Time", "{}"), []string{"Request-Timeout", "50"}, 200, `"result":"true"`},
			"no deadline":        {one("Arith.Time", "{}"), nil, 200, `"result":"false"`},
			"deadline passes":    {one("Arith.Wait", "{}"), []string{"Request-Timeout", "0.05"}, 200, `"code":"deadline_exceeded"`},
			"no time":            {call, []string{"Request-Timeout", "soon"}, 200, "Request-Timeout is not a number of seconds"},
			"hexadecimal time":   {call, []string{"Request-Timeout", "0x1p10"}, 200, "Request-Timeout is not a number of seconds"},
			"gzip":               {packed(call), []string{"Content-Encoding", "gzip"}, 200, `{"jsonrpc":"2.0","result":{"C":56},"id":1}`},
			"gzip of a batch":    {packed("[" + call + "," + call + "]"), []string{"Content-Encoding", "gzip"}, 200, `"id":1},{`},
			"gzip of nothing":    {"x", []string{"Content-Encoding", "gzip"}, 400, `"code":-32000,"message":"the request: decompress`},
			"bomb":               {packed(large), []string{"Content-Encoding", "gzip"}, 413, `"code":"resource_exhausted","outcome":"refused"}},"id":null}`},
			"brotli":             {call, []string{"Content-Encoding", "br"}, 415, "use gzip"},
			"identity":           {call, []string{"Content-Encoding", "identity"}, 200, `"result"`},
			"charset":            {call, []string{"Content-Type", "application/json; charset=iso-8859-1"}, 415, "UTF-8"},
			"text":               {call, []string{"Content-Type", "text/plain"}, 415, "application/json"},
			"large":              {large, nil, 413, `"message":"the message is over the server's limit of 200000 bytes (anser.MaxMessage)"`},
			"large batch":        {"[" + strings.Repeat("1,", 2000) + "1]", nil, 413, `"code":-32600,"message":"Invalid Request: the batch has 2001 requests: send 1000 at most"`},
			"a key twice":        {`{"jsonrpc":"2.0","method":"Arith.Mul","method":"Arith.Mul","id":1}`, nil, 200, `"code":-32700,"message":"Parse error: JSON object has the key \"method\" twice"`},
			"misspelt params":    {`{"jsonrpc":"2.0","method":"Arith.Mul","param":{},"id":1}`, nil, 200, `"code":-32600,"message":"Invalid Request: the message has no member \"param\": did you mean \"params\"?"`},
			"misspelt member":    {one("Arith.Mul", `{"AB":1}`), nil, 200, `"code":-32602,"message":"decode the message with json: the message has no member \"AB\": did you mean \"A\"?"`},
			"the same, in array": {one("Arith.Mul", `[{"AB":1}]`), nil, 200, `"code":-32602,"message":"decode the message with json: the message has no member \"AB\": did you mean \"A\"?"`},
		} {
			resp := send(t, c, "http://"+address+"/jsonrpc", row.body, row.headers...)
			got := text(t, resp)
			if resp.StatusCode != row.status || !strings.Contains(got, row.answer) || !json.Valid([]byte(got)) {
				t.Errorf("%s, %s: %d %s, want %d %s", version, name, resp.StatusCode, got, row.status, row.answer)
			}
			if kind := resp.Header.Get("Content-Type"); (kind == "application/problem+json") != (row.status == 415) {
				t.Errorf("%s, %s: the content type is %s", version, name, kind)
			}
			if row.status > 400 && row.status != 415 && name != "large batch" && resp.Header.Get("Anser-Outcome") != "refused" {
				t.Errorf("%s, %s: the headers are %v", version, name, resp.Header)
			}
			if name == "brotli" && resp.Header.Get("Accept-Encoding") != "gzip" {
				t.Errorf("%s: brotli: the headers are %v", version, resp.Header)
			}
			if want := name == "deadline" || name == "no deadline"; (resp.Header.Get("Trailer-Seen") == "blue") != want {
				t.Errorf("%s, %s: the trailers are %v", version, name, resp.Header)
			}
		}
	}
}

// The compressed body of a client that has not authenticated itself is not read.
func TestJSONRPCWithoutIdentity(t *testing.T) {
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(auth.NewToken())})
	if err != nil {
		t.Fatal(err)
	}
	s, address := serve(t, anser.Authenticate(tokens))
	for version, c := range clients(t) {
		for _, headers := range [][]string{{}, {"Authorization", "Bearer wrong"}} {
			refused := s.Stats().Refused
			resp := send(t, c, "http://"+address+"/jsonrpc", packed(`{"jsonrpc":"2.0","method":"Arith.Mul","id":1}`), append(headers, "Content-Encoding", "gzip")...)
			if got := text(t, resp); resp.StatusCode != 401 || !strings.Contains(got, "unauthenticated") || resp.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: %d %s", version, resp.StatusCode, got)
			}
			if len(headers) == 0 && s.Stats().Refused == refused {
				t.Errorf("%s: the refusal is not counted", version)
			}
		}
	}
}

// With IgnoreUnknown, members that a message does not have are ignored.
func TestIgnoreUnknown(t *testing.T) {
	_, address := serveWith(t, anser.Protocols(protocols.HTTP(protocols.IgnoreUnknown())))
	for version, c := range clients(t) {
		for path, body := range map[string]string{
			"/Arith.Mul": `{"A":7,"B":8,"New":1}`,
			"/jsonrpc":   `{"jsonrpc":"2.0","method":"Arith.Mul","params":{"A":7,"B":8,"New":1},"new":2,"id":1}`,
		} {
			resp := send(t, c, "http://"+address+path, body)
			if got := text(t, resp); resp.StatusCode != 200 || !strings.Contains(got, `"C":56`) {
				t.Errorf("%s, %s: %d %s", version, path, resp.StatusCode, got)
			}
		}
	}
}

// Pair is an argument.
type Pair struct{ A, B int }

// A member that an element of a tuple does not have is refused as elsewhere.
func TestUnknownMembersOfTuples(t *testing.T) {
	s, address := serve(t)
	if err := s.RegisterFunc("Arith.Both", func(_ context.Context, a Pair, n int) (int, error) { return a.A + n, nil }, anser.Params("(a, n) (sum)")); err != nil {
		t.Fatal(err)
	}
	c := clients(t)["HTTP/1.1"]
	for body, want := range map[string]string{
		`[{"A":1},2]`:              `3`,
		`{"a":{"A":1},"n":2}`:      `3`,
		`[{"A":1,"b_":3},2]`:       `argument a: the message has no member \"b_\": did you mean \"B\"?`,
		`{"a":{"A":1},"number":2}`: `there is no argument \"number\"`,
	} {
		if got := text(t, send(t, c, "http://"+address+"/Arith.Both", body)); !strings.Contains(got, want) {
			t.Errorf("%s is answered with %s, want %s", body, got, want)
		}
	}
}

// The body of a request that does not arrive in time is answered with 408.
func TestSlowBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a time limit")
	}
	t.Parallel()
	_, address := serve(t)
	for _, path := range []string{"/Arith.Mul", "/jsonrpc"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			body, w := io.Pipe()
			defer w.Close()
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+path, body)
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = 100
			r.Header.Set("Content-Type", "application/json")
			resp, err := clients(t)["HTTP/1.1"].Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := text(t, resp); resp.StatusCode != 408 || !strings.Contains(got, "did not arrive in time") {
				t.Errorf("%d %s", resp.StatusCode, got)
			}
			resp.Body.Close()
		})
	}
}

package protocols_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

// An unknown method is answered with the same text in every protocol, which names the method that
// was meant.
func TestUnknownMethod(t *testing.T) {
	_, addr := serve(t)
	const want = `method "Arith.Mull" is not served here: did you mean "Arith.Mul"?`
	c, err := anser.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := anser.Call[reply](t.Context(), c, "Arith.Mull", &args{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Anser: %v", err)
	}
	for version, c := range clients(t) {
		for name, row := range map[string]struct {
			path, kind, body string
			status           int
			code             string
		}{
			"JSON":           {"/Arith.Mull", "application/json", "{}", 404, `"code":"unimplemented"`},
			"Connect's path": {"/Arith/Mull", "application/json", "{}", 404, `"code":"unimplemented"`},
			"Connect":        {"/Arith/Mull", "application/proto", "", 404, `"code":"unimplemented"`},
			"Connect stream": {"/Arith/Mull", "application/connect+json", "", 200, `"code":"unimplemented"`},
			"gRPC-Web":       {"/Arith/Mull", "application/grpc-web+proto", "", 200, "grpc-status: 12"},
			"gRPC":           {"/Arith/Mull", "application/grpc+proto", "\x00\x00\x00\x00\x00", 200, ""},
			"JSON-RPC":       {"/jsonrpc", "application/json", `{"jsonrpc":"2.0","method":"Arith.Mull","id":1}`, 200, `"code":-32601`},
		} {
			if name == "gRPC" && version == "HTTP/1.1" {
				continue
			}
			resp := send(t, c, "http://"+addr+row.path, row.body, "Content-Type", row.kind)
			got := text(t, resp)
			plain, err := url.PathUnescape(got + resp.Header.Get("Grpc-Message"))
			if err != nil {
				t.Error(err)
			}
			plain = strings.ReplaceAll(plain, `\"`, `"`)
			if resp.StatusCode != row.status || !strings.Contains(plain, want) || !strings.Contains(got, row.code) {
				t.Errorf("%s over %s: %d %s", name, version, resp.StatusCode, plain)
			}
		}
	}
}

// A POST to an unknown path needs a credential like a call, and a caller with one that may not know
// the methods is not told any. A request that cannot be a call gets a plain 404.
func TestNotFound(t *testing.T) {
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/own" {
			io.WriteString(w, "mine")
			return
		}
		protocols.NotFound(w, r)
	})
	_, addr := serveWith(t, protocols.All(protocols.Handler(own)), anser.Authenticate(anser.AuthenticatorFunc(func(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
		return &anser.Identity{Subject: string(l.Data)}, nil
	})), anser.Authorize(deny("mallory")))
	for version, c := range clients(t) {
		for _, row := range []struct {
			verb, path, token string
			status            int
			want              string
		}{
			{"GET", "/own", "", 200, "mine"},
			{"GET", "/Arith.Mull", "", 404, "404 page not found\n"},
			{"POST", "/Arith.Mull", "", 401, `"code":"unauthenticated"`},
			{"POST", "/Arith.Mull", "alice", 404, `"detail":"the method is not served here"`},
		} {
			req, err := http.NewRequestWithContext(t.Context(), row.verb, "http://"+addr+row.path, strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			if row.token != "" {
				req.Header.Set("Authorization", "Bearer "+row.token)
			}
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got := text(t, resp)
			resp.Body.Close()
			if resp.StatusCode != row.status || !strings.Contains(got, row.want) {
				t.Errorf("%s %s as %q over %s: %d %s", row.verb, row.path, row.token, version, resp.StatusCode, got)
			}
		}
	}
}

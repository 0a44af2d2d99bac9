package protocols_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"net/rpc/jsonrpc"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/internal/test/protocols/sample"
)

// disguises are ways to write a name so that a server might take it for another one than its policy
// does.
var disguises = map[string]func(string) string{
	"itself":                   func(s string) string { return s },
	"lower case":               strings.ToLower,
	"upper case":               strings.ToUpper,
	"another case":             func(s string) string { return strings.Replace(s, "Locked", "locked", 1) },
	"escaped letter":           func(s string) string { return strings.Replace(s, "L", "%4C", 1) },
	"letter escaped twice":     func(s string) string { return strings.Replace(s, "L", "%254C", 1) },
	"escaped dots":             func(s string) string { return strings.ReplaceAll(s, ".", "%2e") },
	"escaped dots, upper":      func(s string) string { return strings.ReplaceAll(s, ".", "%2E") },
	"escaped slashes":          func(s string) string { return strings.ReplaceAll(s, "/", "%2f") },
	"dots for slashes":         func(s string) string { return strings.ReplaceAll(s, "/", ".") },
	"slashes for dots":         func(s string) string { return strings.ReplaceAll(s, ".", "/") },
	"backslashes":              func(s string) string { return strings.ReplaceAll(s, "/", "\\") },
	"double slashes":           func(s string) string { return strings.ReplaceAll(s, "/", "//") },
	"double dots":              func(s string) string { return strings.ReplaceAll(s, ".", "..") },
	"dot segment":              func(s string) string { return "/." + s },
	"parent segment":           func(s string) string { return "/x/.." + s },
	"escaped parent segment":   func(s string) string { return "/x/%2e%2e" + s },
	"trailing slash":           func(s string) string { return s + "/" },
	"trailing dot":             func(s string) string { return s + "." },
	"leading dot":              func(s string) string { return "." + s },
	"NUL":                      func(s string) string { return s + "\x00" },
	"escaped NUL":              func(s string) string { return s + "%00" },
	"escaped NUL and suffix":   func(s string) string { return s + "%00.Open" },
	"space":                    func(s string) string { return s + " " },
	"escaped space":            func(s string) string { return s + "%20" },
	"plus":                     func(s string) string { return s + "+" },
	"line break":               func(s string) string { return s + "%0d%0a" },
	"parameters":               func(s string) string { return s + ";x=y" },
	"parameters in the middle": func(s string) string { return strings.Replace(s, "Doors", "Doors;x", 1) },
	"query":                    func(s string) string { return s + "?method=test.Doors.Open" },
	"fragment":                 func(s string) string { return s + "#test.Doors.Open" },
	"wide letters":             func(s string) string { return strings.Replace(s, "L", "Ｌ", 1) },
	"look-alike":               func(s string) string { return strings.Replace(s, "o", "о", 1) }, // Cyrillic
	"soft hyphen":              func(s string) string { return strings.Replace(s, "ck", "c\u00adk", 1) },
	"decomposed":               func(s string) string { return strings.Replace(s, "e", "e\u0301", 1) },
	"overlong slash":           func(s string) string { return strings.ReplaceAll(s, "/", "%c0%af") },
	"no leading slash":         func(s string) string { return strings.TrimPrefix(s, "/") },
	"absolute":                 func(s string) string { return "http://127.0.0.1" + s },
	"alias":                    func(s string) string { return strings.Replace(s, "Locked", "Bolted", 1) },
	"fully qualified":          func(s string) string { return strings.Replace(s, "/test", "/.test", 1) },
	"allowed name before":      func(s string) string { return "/test.Doors.Open" + s },
	"allowed name behind":      func(s string) string { return s + "/../Open" },
}

// attempt calls what looks like a path over a protocol, and returns the name that the protocol made
// of it if that is not the path.
type attempt func(t *testing.T, address, path, token string)

// rawHTTP sends a request over HTTP/1.1 as it is.
func rawHTTP(t *testing.T, address, method, target, token, kind, body string, more ...string) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(nc, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s",
		method, target, token, kind, strings.Join(more, ""), len(body), body)
	io.Copy(io.Discard, nc)
}

var attempts = map[string]attempt{
	"JSON": func(t *testing.T, address, path, token string) {
		rawHTTP(t, address, "POST", path, token, "application/json", `"x"`)
	},
	"Connect": func(t *testing.T, address, path, token string) {
		rawHTTP(t, address, "POST", path, token, "application/proto", "\x0a\x01x")
	},
	"Connect, GET": func(t *testing.T, address, path, token string) {
		rawHTTP(t, address, "GET", path+"?connect=v1&encoding=json&message=%22x%22", token, "application/json", "")
	},
	"Connect, stream": func(t *testing.T, address, path, token string) {
		rawHTTP(t, address, "POST", path, token, "application/connect+proto", "\x00\x00\x00\x00\x03\x0a\x01x")
	},
	"gRPC-Web": func(t *testing.T, address, path, token string) {
		rawHTTP(t, address, "POST", path, token, "application/grpc-web+proto", "\x00\x00\x00\x00\x03\x0a\x01x")
	},
	"method overrides": func(t *testing.T, address, path, token string) {
		for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
			rawHTTP(t, address, "GET", path, token, "application/json", `"x"`, name+": POST\r\n")
		}
		for _, name := range []string{"X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Path", "X-Forwarded-Prefix", "Forwarded", "Grpc-Method", ":path"} {
			rawHTTP(t, address, "POST", "/test.Doors.Open", token, "application/json", `"x"`, name+": "+strings.Map(printable, path)+"\r\n")
		}
	},
	"gRPC": func(t *testing.T, address, path, token string) { rawGRPC(t, address, path, token) },
	"JSON-RPC over HTTP": func(t *testing.T, address, path, token string) {
		for _, name := range namesOf(path) {
			rawHTTP(t, address, "POST", "/jsonrpc", token, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":["x"]}`, name))
		}
	},
	"JSON-RPC over TCP": func(t *testing.T, address, path, token string) {
		for _, name := range namesOf(path) {
			c, err := jsonrpc.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			callOldName(c, name, token)
		}
	},
	"net/rpc": func(t *testing.T, address, path, token string) {
		for _, name := range namesOf(path) {
			c, err := rpc.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			callOldName(c, name, token)
		}
	},
	"Anser": func(t *testing.T, address, path, token string) {
		c, err := anser.Dial(address, silent, auth.Token(token), anser.NoSnapshot())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, name := range namesOf(path) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			anser.Call[wrapperspb.StringValue](ctx, c, name, wrapperspb.String("x"))
			cancel()
		}
	},
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// namesOf returns names that a path may stand for in protocols without paths.
func namesOf(path string) []string {
	bare := strings.TrimPrefix(path, "/")
	return []string{path, bare, strings.ReplaceAll(bare, "/", ".")}
}

func callOldName(c *rpc.Client, name, token string) {
	defer c.Close()
	var ok bool
	if c.Call("Anser.Login", token, &ok) != nil {
		return
	}
	var out struct{ Value string }
	c.Call(name, struct{ Value string }{"x"}, &out)
}

// rawGRPC sends a call of gRPC with any path.
func rawGRPC(t *testing.T, address, path, token string) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	var out, block bytes.Buffer
	out.WriteString(http2.ClientPreface)
	fr := http2.NewFramer(&out, nc)
	fr.WriteSettings()
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", path},
		{":authority", "127.0.0.1"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
		{"authorization", "Bearer " + token},
	} {
		enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	fr.WriteData(1, true, []byte("\x00\x00\x00\x00\x03\x0a\x01x"))
	nc.Write(out.Bytes())
	for {
		f, err := fr.ReadFrame()
		if err != nil || f.Header().StreamID == 1 && (f.Header().Flags.Has(http2.FlagHeadersEndStream) && f.Header().Type != http2.FrameWindowUpdate || f.Header().Type == http2.FrameRSTStream) {
			return
		}
	}
}

// No way to write the name of a method over any protocol reaches it without the right to it, and
// each that reaches it with the right is the same method for policies, interceptors and observers.
func TestNoNameEscapesThePolicy(t *testing.T) {
	ann, bob := auth.NewToken(), auth.NewToken()
	tokens, err := auth.NewTokens(
		auth.Grant{Subject: "ann", Groups: []string{"keepers"}, SHA256: auth.Digest(ann)},
		auth.Grant{Subject: "bob", SHA256: auth.Digest(bob)},
	)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := auth.NewPolicy(auth.Rules{Allow: []auth.Rule{
		{Methods: []string{"test.Doors.Open"}, Subjects: []string{"*"}},
		{Methods: []string{"test.Doors.Locked"}, Groups: []string{"keepers"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	type seen struct{ subject, method string }
	var mu sync.Mutex
	ran := make(map[seen]int)
	observed := make(map[string]bool)
	count := anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			mu.Lock()
			ran[seen{anser.IdentityFrom(ctx).Subject, inv.Method}]++
			mu.Unlock()
			return next(ctx, inv)
		}
	})
	observe := anser.Observe(anser.Observer{Request: func(_ context.Context, m anser.MessageInfo) error {
		mu.Lock()
		observed[m.Method] = true
		mu.Unlock()
		return nil
	}})
	_, address := start(t, func(s *anser.Server) {
		say := func(_ context.Context, in *wrapperspb.StringValue) (*wrapperspb.StringValue, error) { return in, nil }
		anser.Handle(s, "test.Doors.Open", say)
		anser.Handle(s, "test.Doors.Locked", say, anser.Alias("test.Doors.Bolted"))
	}, anser.Authenticate(tokens), anser.Authorize(policy), count, observe)
	for protocol, try := range attempts {
		t.Run(protocol, func(t *testing.T) {
			for name, disguise := range disguises {
				for _, path := range []string{"/test.Doors/Locked", "/test.Doors.Locked"} {
					try(t, address, disguise(path), bob)
					mu.Lock()
					if n := ran[seen{"bob", "test.Doors.Locked"}]; n > 0 {
						t.Errorf("%s of %s has run", name, path)
					}
					clear(ran)
					mu.Unlock()
					try(t, address, disguise(path), ann)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if protocol != "method overrides" && protocol != "Connect, GET" && ran[seen{"ann", "test.Doors.Locked"}] == 0 && !observed["test.Doors.Locked"] {
				t.Error("no attempt has reached the method with the right to it")
			}
			for method := range observed {
				if method != "test.Doors.Open" && method != "test.Doors.Locked" {
					t.Errorf("observers have seen the method as %q", method)
				}
			}
			clear(observed)
			for at := range ran {
				if at.method != "test.Doors.Open" && at.method != "test.Doors.Locked" {
					t.Errorf("interceptors have seen %v", at)
				}
			}
			clear(ran)
		})
	}
}

// The built-in methods of the server and paths of annotations are no way around a policy, either.
func TestNoPathEscapesThePolicy(t *testing.T) {
	bob := auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "bob", SHA256: auth.Digest(bob)})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := auth.NewPolicy(auth.Rules{Allow: []auth.Rule{{Methods: []string{"test.Doors.Open"}, Subjects: []string{"*"}}}})
	if err != nil {
		t.Fatal(err)
	}
	l := new(sample.Library)
	address := serve(t, addLibrary(l), anser.Authenticate(tokens), anser.Authorize(policy))
	for name, disguise := range map[string]func(string) string{
		"itself": func(s string) string { return s }, "case": strings.ToUpper, "escape": func(s string) string { return strings.Replace(s, "s", "%73", 1) },
		"slash": func(s string) string { return s + "/" }, "double": func(s string) string { return strings.Replace(s, "/", "//", 2) },
		"query": func(s string) string { return s + "?name=x" }, "parent": func(s string) string { return "/x/.." + s },
	} {
		for _, path := range []string{"/v1/shelves/1/books/2", "/v1/shelves/1/books/2:title", "/Anser.Methods", "/Anser/Methods", "/Anser.Contract"} {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPatch, "ARCHIVE"} {
				rawHTTP(t, address, method, disguise(path), bob, "application/json", "{}")
			}
			rawGRPC(t, address, disguise(path), bob)
			if n := l.Calls.Load(); n > 0 {
				t.Fatalf("%s of %s has run", name, path)
			}
		}
	}
}

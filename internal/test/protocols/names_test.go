package protocols_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
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
	"allowed name and parent":  func(s string) string { return "/test.Doors/Open/.." + strings.TrimPrefix(s, "/test.Doors") },
	"parent with parameters":   func(s string) string { return "/test.Doors/Open/..;" + s },
	"list with allowed name":   func(s string) string { return "/test.Doors/Open," + s },
	"dot segment inside":       func(s string) string { return strings.Replace(s, "Doors", "Doors/.", 1) },
	"two dot segments":         func(s string) string { return "/././" + s },
	"many slashes behind":      func(s string) string { return s + strings.Repeat("/", 100) },
	"slashes escaped twice":    func(s string) string { return strings.ReplaceAll(s, "/", "%252f") },
	"escaped backslashes":      func(s string) string { return strings.ReplaceAll(s, "/", "%5c") },
	"escaped trailing slash":   func(s string) string { return s + "%2F" },
	"overlong dot":             func(s string) string { return strings.ReplaceAll(s, ".", "%c0%ae") },
	"escape of another kind":   func(s string) string { return strings.Replace(s, "L", "%u004C", 1) },
	"incomplete escape":        func(s string) string { return s + "%" },
	"escape without a number":  func(s string) string { return s + "%zz" },
	"NUL inside":               func(s string) string { return strings.Replace(s, "Doors", "Doors\x00", 1) },
	"tab":                      func(s string) string { return s + "\t" },
	"byte without a letter":    func(s string) string { return s + "\xff" },
	"slash of fractions":       func(s string) string { return strings.ReplaceAll(s, "/", "∕") },
	"wide slash":               func(s string) string { return strings.ReplaceAll(s, "/", "／") },
	"wide dot":                 func(s string) string { return strings.ReplaceAll(s, ".", "．") },
	"Kelvin":                   func(s string) string { return strings.Replace(s, "k", "\u212a", 1) }, // k in another case
	"long s":                   func(s string) string { return strings.Replace(s, "s", "\u017f", 1) }, // s in another case
	"byte order mark":          func(s string) string { return strings.Replace(s, "t", "\ufefft", 1) },
	"joiner":                   func(s string) string { return strings.Replace(s, "ck", "c\u200dk", 1) },
	"override of direction":    func(s string) string { return strings.Replace(s, "Lock", "\u202ekcoL\u202c", 1) },
	"alias in another case":    func(s string) string { return strings.Replace(s, "Locked", "bolted", 1) },
	"built-in prefix":          func(s string) string { return strings.Replace(s, "/test", "/Anser/test", 1) },
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
			rawHTTP(t, address, "POST", "/jsonrpc", token, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%s,"params":["x"]}`, inJSON(name)))
		}
	},
	"JSON-RPC batch over HTTP": func(t *testing.T, address, path, token string) {
		for _, name := range namesOf(path) {
			rawHTTP(t, address, "POST", "/jsonrpc", token, "application/json", batchOf(name))
		}
	},
	"JSON-RPC batch over TCP": func(t *testing.T, address, path, token string) {
		for _, name := range namesOf(path) {
			rawBatch(t, address, name, token)
		}
	},
	"JSON-RPC with two names": func(t *testing.T, address, path, token string) {
		name := inJSON(strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "."))
		for _, names := range []string{`"method":"test.Doors.Open","method":` + name, `"method":"test.Doors.Open","Method":` + name, `"METHOD":` + name} {
			rawHTTP(t, address, "POST", "/jsonrpc", token, "application/json", `{"jsonrpc":"2.0","id":1,`+names+`,"params":["x"]}`)
			rawHTTP(t, address, "POST", "/jsonrpc?method=test.Doors.Open", token, "application/json", `[{"jsonrpc":"2.0",`+names+`,"params":["x"]}]`)
		}
	},
	"JSON, HTTP/2": func(t *testing.T, address, path, token string) {
		rawHTTP2(t, address, token, `"x"`, true, [2]string{":method", "POST"}, [2]string{":path", path}, [2]string{"content-type", "application/json"})
	},
	"Connect, HTTP/2": func(t *testing.T, address, path, token string) {
		rawHTTP2(t, address, token, "\x0a\x01x", true, [2]string{":method", "POST"}, [2]string{":path", path}, [2]string{"content-type", "application/proto"})
	},
	"stream of events": func(t *testing.T, address, path, token string) {
		rawHTTP(t, address, "POST", path, token, "application/json", `"x"`, "Accept: text/event-stream\r\n")
	},
	"stream of WebSocket": rawSocket,
	"stream of WebSocket, HTTP/2": func(t *testing.T, address, path, token string) {
		rawHTTP2(t, address, token, socketMessage, false, [2]string{":method", "CONNECT"}, [2]string{":protocol", "websocket"}, [2]string{":path", path},
			[2]string{"sec-websocket-version", "13"})
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

// inJSON returns a text as JSON.
func inJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// batchOf has a call of a method between others, and a notification.
func batchOf(name string) string {
	const one = `{"jsonrpc":"2.0",%s"method":%s,"params":["x"]}`
	open, name := `"test.Doors.Open"`, inJSON(name)
	return "[" + fmt.Sprintf(one, `"id":1,`, open) + "," + fmt.Sprintf(one, `"id":2,`, name) + "," + fmt.Sprintf(one, "", name) + "," + fmt.Sprintf(one, `"id":3,`, open) + "]"
}

// rawBatch sends a login and a batch over TCP.
func rawBatch(t *testing.T, address, name, token string) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(nc, `{"jsonrpc":"2.0","id":0,"method":"Anser.Login","params":[%q]}`+"\n%s\n", token, strings.ReplaceAll(batchOf(name), `["x"]`, `[{"Value":"x"}]`))
	var answer json.RawMessage
	for in := json.NewDecoder(nc); in.Decode(&answer) == nil && answer[0] != '['; {
	}
}

// socketMessage is a text message of a WebSocket client, with a mask of zeros.
const socketMessage = "\x81\x83\x00\x00\x00\x00" + `"x"`

// rawSocket opens a WebSocket and sends a message.
func rawSocket(t *testing.T, address, path, token string) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAuthorization: Bearer %s\r\n\r\n", path, token)
	in := bufio.NewReader(nc)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return
	}
	io.WriteString(nc, socketMessage)
	for {
		var head [2]byte
		if _, err := io.ReadFull(in, head[:]); err != nil || head[0] == 0x88 {
			return // its end
		}
		size := int(head[1])
		if size == 126 {
			if _, err := io.ReadFull(in, head[:]); err != nil {
				return
			}
			size = int(binary.BigEndian.Uint16(head[:]))
		}
		in.Discard(size)
	}
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

// rawGRPC sends a gRPC call with any path.
func rawGRPC(t *testing.T, address, path, token string) {
	t.Helper()
	rawHTTP2(t, address, token, "\x00\x00\x00\x00\x03\x0a\x01x", true, [2]string{":method", "POST"}, [2]string{":path", path},
		[2]string{"content-type", "application/grpc"}, [2]string{"te", "trailers"})
}

// rawHTTP2 sends a request over HTTP/2 as it is, and waits for the end of its stream or WebSocket.
func rawHTTP2(t *testing.T, address, token, body string, ends bool, fields ...[2]string) {
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
	fields = append([][2]string{{":scheme", "http"}, {":authority", "127.0.0.1"}}, fields...)
	for _, f := range append(fields, [2]string{"authorization", "Bearer " + token}) {
		enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	fr.WriteData(1, ends, []byte(body))
	nc.Write(out.Bytes())
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return
		}
		switch h := f.Header(); {
		case h.Type == http2.FrameGoAway:
			return
		case h.StreamID != 1 || h.Type == http2.FrameWindowUpdate:
		case h.Type == http2.FrameRSTStream, h.Flags.Has(http2.FlagHeadersEndStream):
			return
		case h.Type == http2.FrameData && !ends && len(f.(*http2.DataFrame).Data()) > 0 && f.(*http2.DataFrame).Data()[0] == 0x88:
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
		{Methods: []string{"test.Doors.Locked", "test.Doors.LockedStream"}, Groups: []string{"keepers"}},
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
		anser.ServerStreamMethod[wrapperspb.StringValue, wrapperspb.StringValue]("test.Doors.LockedStream").Handle(s,
			func(_ context.Context, in *wrapperspb.StringValue, out anser.Sender[wrapperspb.StringValue]) error {
				return out.Send(in)
			},
			anser.Alias("test.Doors.BoltedStream"))
	}, anser.Authenticate(tokens), anser.Authorize(policy), count, observe)
	for protocol, try := range attempts {
		t.Run(protocol, func(t *testing.T) {
			target := "Locked"
			if strings.HasPrefix(protocol, "stream") {
				target = "LockedStream"
			}
			reaches := protocol != "method overrides" && protocol != "Connect, GET" && protocol != "JSON-RPC with two names"
			for name, disguise := range disguises {
				for _, path := range []string{"/test.Doors/" + target, "/test.Doors." + target} {
					try(t, address, disguise(path), bob)
					mu.Lock()
					if n := ran[seen{"bob", "test.Doors." + target}]; n > 0 {
						t.Errorf("%s of %s has run", name, path)
					}
					clear(ran)
					mu.Unlock()
					try(t, address, disguise(path), ann)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if reaches && ran[seen{"ann", "test.Doors." + target}] == 0 && !observed["test.Doors."+target] {
				t.Error("no attempt has reached the method with the right to it")
			}
			for method := range observed {
				if method != "test.Doors.Open" && method != "test.Doors."+target {
					t.Errorf("observers have seen the method as %q", method)
				}
			}
			clear(observed)
			for at := range ran {
				if at.method != "test.Doors.Open" && at.method != "test.Doors."+target {
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

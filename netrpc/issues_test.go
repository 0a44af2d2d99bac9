package netrpc_test

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	stock "net/rpc"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// The tests of this file are the issues opened for net/rpc before it was frozen. Their numbers are
// those of golang/go.

// rpc: allow aliasing methods.
func TestIssue3615AliasedMethods(t *testing.T) {
	s := quiet(new(Arith))
	for _, err := range []error{
		s.Alias("Arith.Sum", "Arith.Add"), s.Alias("Calculator.Plus", "Arith.Add"), s.DeprecatedAlias("Arith.Plus", "Arith.Add"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// net/rpc clients can also call them.
	addr := serve(t, s, nil)
	c, err := stock.Dial("tcp", addr)
	client(t, c, err)
	for _, name := range []string{"Arith.Add", "Arith.Sum", "Calculator.Plus", "Arith.Plus", "Arith.Plus"} {
		var reply Reply
		if err := c.Call(name, Args{1, 2}, &reply); err != nil || reply.C != 3 {
			t.Errorf("%s: %v, %v", name, reply, err)
		}
	}
	for _, m := range s.Stats().Methods {
		if m.Name != "Arith.Add" {
			continue
		}
		want := []netrpc.AliasStats{{"Arith.Plus", true, 2}, {"Arith.Sum", false, 1}, {"Calculator.Plus", false, 1}}
		if fmt.Sprint(m.Aliases) != fmt.Sprint(want) || m.Calls != 5 {
			t.Errorf("counted are %v of %d: want %v of 5", m.Aliases, m.Calls, want)
		}
	}
	if err := s.Alias("Arith.Sum", "Arith.Mul"); err == nil {
		t.Error("an alias is given twice")
	}
	if err := s.Alias("Arith.New", "Arith.Nothing"); err == nil {
		t.Error("nothing gets an alias")
	}
}

// Caller returns properties of the caller.
type Caller struct{}

// Calls returns the address of the caller.
func (Caller) Calls(ctx context.Context, _ *Args) (*string, error) {
	peer, ok := netrpc.PeerFrom(ctx)
	if !ok {
		return nil, errors.New("nobody calls")
	}
	addr := peer.Addr.String()
	if peer.TLS != nil {
		addr += " over TLS"
	}
	return &addr, nil
}

// Is returns the identity of the caller.
func (Caller) Is(ctx context.Context, _ *Args, reply *string) error {
	*reply = fmt.Sprint(netrpc.IdentityFrom(ctx))
	return nil
}

// net/rpc: access to client's IP address.
func TestIssue4584ClientAddress(t *testing.T) {
	s := quiet(Caller{})
	for name, connect := range map[string]func(net.Conn) (caller, error){
		"gob":  func(c net.Conn) (caller, error) { return stock.NewClient(c), nil },
		"JSON": func(c net.Conn) (caller, error) { return jsonrpc.NewClient(c), nil },
		"CONNECT": func(c net.Conn) (caller, error) {
			fmt.Fprintf(c, "CONNECT %s HTTP/1.0\n\n", netrpc.DefaultRPCPath)
			response, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
			if err == nil && response.StatusCode != http.StatusOK {
				err = errors.New(response.Status)
			}
			return stock.NewClient(c), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var addr string
			switch name {
			case "JSON":
				addr = serve(t, quiet(Caller{}), jsonrpc.NewServerCodec)
			case "CONNECT":
				addr = serveHTTP(t, s)
			default:
				addr = serve(t, quiet(Caller{}), nil)
			}
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			c, err := connect(conn)
			client(t, c, err)
			var got string
			if err := c.Call("Caller.Calls", &Args{}, &got); err != nil || got != conn.LocalAddr().String() {
				t.Errorf("the caller is %q, %v: want %v", got, err, conn.LocalAddr())
			}
		})
	}
}

// Authentication for RPC and HTTP.
func TestIssue4591Authentication(t *testing.T) {
	s := quiet(new(Arith), Caller{})
	s.Authenticate = func(_ context.Context, c *netrpc.Credentials) (any, error) {
		if subtle.ConstantTimeCompare([]byte(c.Token), []byte("a token")) == 1 {
			return "bearer", nil
		}
		if c.Request != nil {
			if user, password, _ := c.Request.BasicAuth(); user == "gopher" && subtle.ConstantTimeCompare([]byte(password), []byte("a word")) == 1 {
				return user, nil
			}
		}
		return nil, errors.New("no")
	}
	mux := http.NewServeMux()
	s.HandleHTTPMux(mux, netrpc.DefaultRPCPath, netrpc.DefaultDebugPath)
	web, raw := serveHTTP(t, mux), serve(t, s, nil)
	ctx := t.Context()

	is := func(c caller, want string) {
		t.Helper()
		var got string
		if err := c.Call("Caller.Is", &Args{}, &got); err != nil || got != want {
			t.Errorf("the caller is %q, %v: want %s", got, err, want)
		}
	}
	// HTTP, with a token and with a password.
	c, err := (&netrpc.Dialer{Token: "a token"}).DialHTTP(ctx, "tcp", web, "")
	is(client(t, c, err), "bearer")
	basic := &http.Request{Header: make(http.Header)}
	basic.SetBasicAuth("gopher", "a word")
	c, err = (&netrpc.Dialer{Header: basic.Header}).DialHTTP(ctx, "tcp", web, "")
	is(client(t, c, err), "gopher")
	for _, d := range []netrpc.Dialer{{}, {Token: "another"}, {Header: http.Header{"Authorization": {"Basic Zm9vOmJhcg=="}}}} {
		if c, err := d.DialHTTP(ctx, "tcp", web, ""); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("%+v: %v, %v", d, c, err)
		}
	}
	response, err := http.Get("http://" + web + netrpc.DefaultDebugPath)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("the debug page says %s to everybody", response.Status)
	}
	// RPC, from this package and from a net/rpc client that logs in itself.
	c, err = (&netrpc.Dialer{Token: "a token"}).Dial(ctx, "tcp", raw)
	is(client(t, c, err), "bearer")
	old, err := stock.Dial("tcp", raw)
	client(t, old, err)
	var ok bool
	if err := old.Call(netrpc.LoginMethod, "a token", &ok); err != nil || !ok {
		t.Fatalf("login: %v, %v", ok, err)
	}
	is(old, "bearer")
	if _, err := (&netrpc.Dialer{Token: "another"}).Dial(ctx, "tcp", raw); err == nil || !strings.Contains(err.Error(), "unauthenticated") {
		t.Errorf("with a wrong token: %v", err)
	}
	// Without a login no method can be called, and no information is disclosed.
	var answers []string
	for _, method := range []string{"Arith.Add", "Arith.Nothing", "Nobody.Add", ""} {
		c := dial(t, raw)
		err := c.Call(method, Args{1, 2}, new(Reply))
		if err == nil {
			t.Fatalf("%q runs", method)
		}
		answers = append(answers, err.Error())
		if err := c.Call("Arith.Add", Args{1, 2}, new(Reply)); err == nil {
			t.Error("the connection lives on")
		}
	}
	for _, a := range answers {
		if a != answers[0] || !strings.Contains(a, netrpc.LoginMethod) {
			t.Errorf("the answers are %q", answers)
		}
	}
}

// net/rpc: add client support for RPC over HTTPS.
func TestIssue7946HTTPS(t *testing.T) {
	s := quiet(new(Arith), Caller{})
	for _, path := range []string{netrpc.DefaultRPCPath, "/other"} {
		mux := http.NewServeMux()
		s.HandleHTTPMux(mux, path, "")
		web := httptest.NewTLSServer(mux)
		t.Cleanup(web.Close)
		addr, config := web.Listener.Addr().String(), web.Client().Transport.(*http.Transport).TLSClientConfig
		var c *netrpc.Client
		var err error
		if path == netrpc.DefaultRPCPath {
			c, err = netrpc.DialHTTPTLS("tcp", addr, config)
		} else {
			c, err = netrpc.DialHTTPPathTLS("tcp", addr, path, config)
		}
		client(t, c, err)
		mustAdd(t, c)
		var who string
		if err := c.Call("Caller.Calls", &Args{}, &who); err != nil || !strings.HasSuffix(who, " over TLS") {
			t.Errorf("the caller is %q, %v", who, err)
		}
		// An untrusted certificate.
		if _, err := netrpc.DialHTTPTLS("tcp", addr, nil); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("without its certificate: %v", err)
		}
	}
}

// net/rpc/jsonrpc: missing support for JSON-RPC 2.0. The cases are those of its specification, as
// far as they are about the protocol.
func TestIssue10929JSONRPC2(t *testing.T) {
	s := quiet(new(Arith))
	conn, err := net.Dial("tcp", serve(t, s, jsonrpc.NewServerCodec))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	in := json.NewDecoder(conn)
	for _, c := range []struct{ request, response string }{
		{`{"jsonrpc":"2.0","method":"Arith.Add","params":[{"A":1,"B":2}],"id":1}`, `{"jsonrpc":"2.0","result":{"C":3},"id":1}`},
		{`{"jsonrpc":"2.0","method":"Arith.Add","params":{"A":1,"B":2},"id":"x"}`, `{"jsonrpc":"2.0","result":{"C":3},"id":"x"}`},
		{`{"jsonrpc":"2.0","method":"Arith.Nothing","id":"1"}`, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"rpc: can't find method Arith.Nothing"},"id":"1"}`},
		{`{"jsonrpc":"2.0","method":"Arith.Div","params":{"A":1},"id":2}`, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"divide by zero"},"id":2}`},
		{`{"jsonrpc":"2.0","method":"Arith.Add","id":3}`, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"jsonrpc: request body missing params"},"id":3}`},
		{`{"jsonrpc":"2.0","method":"Arith.Add","params":"text","id":3}`, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"jsonrpc: params is neither an array nor an object"},"id":3}`},
		{`{"jsonrpc":"2.0","method":1,"params":"bar"}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"the request has no method"},"id":null}`},
		{`[]`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"the batch is empty"},"id":null}`},
		{`[1]`, `[{"jsonrpc":"2.0","error":{"code":-32600,"message":"the request is not an object"},"id":null}]`},
		// A notification has no response, so the following response belongs to the next request.
		{`{"jsonrpc":"2.0","method":"Arith.Add","params":{"A":1,"B":2}} {"jsonrpc":"2.0","method":"Arith.Mul","params":{"A":2,"B":2},"id":4}`, `{"jsonrpc":"2.0","result":{"C":4},"id":4}`},
		{`[{"jsonrpc":"2.0","method":"Arith.Add","params":{"A":1,"B":2}}] {"jsonrpc":"2.0","method":"Arith.Mul","params":{"A":3,"B":3},"id":5}`, `{"jsonrpc":"2.0","result":{"C":9},"id":5}`},
		{`[{"jsonrpc":"2.0","method":"Arith.Nothing","params":{}},{"jsonrpc":"2.0","method":"Arith.Mul","params":{"A":3,"B":4},"id":6}]`, `[{"jsonrpc":"2.0","result":{"C":12},"id":6}]`},
		// A JSON-RPC 1.0 message gets a 1.0 answer.
		{`{"method":"Arith.Add","params":[{"A":1,"B":2}],"id":7}`, `{"id":7,"result":{"C":3},"error":null}`},
	} {
		if _, err := io.WriteString(conn, c.request); err != nil {
			t.Fatal(err)
		}
		var got json.RawMessage
		if err := in.Decode(&got); err != nil {
			t.Fatalf("%s: %v", c.request, err)
		}
		if string(got) != c.response {
			t.Errorf("%s\n got %s\nwant %s", c.request, got, c.response)
		}
	}
	// A client receives the code.
	c, err := jsonrpc.Dial2("tcp", serve(t, quiet(new(Arith)), jsonrpc.NewServerCodec))
	client(t, c, err)
	mustAdd(t, c)
	var known *jsonrpc.Error
	if err := c.Call("Arith.Nothing", &Args{}, new(Reply)); !errors.As(err, &known) || known.Code != jsonrpc.CodeMethodNotFound {
		t.Errorf("an unknown method: %v", err)
	}
}

// net/rpc: Server.ServeHTTP assumes default http mux.
func TestIssue13395OwnMux(t *testing.T) {
	// Two servers under the same paths, each on its own mux, and not on http.DefaultServeMux.
	for _, extra := range []int{1, 2} {
		s := quiet(new(Arith))
		if err := s.RegisterFunc("Extra", func(_ *Args, reply *Reply) error { reply.C = extra; return nil }); err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		s.HandleHTTPMux(mux, netrpc.DefaultRPCPath, netrpc.DefaultDebugPath)
		addr := serveHTTP(t, mux)
		c, err := netrpc.DialHTTP("tcp", addr)
		client(t, c, err)
		var reply Reply
		if err := c.Call("Extra", &Args{}, &reply); err != nil || reply.C != extra {
			t.Errorf("got %v, %v: want %d", reply, err, extra)
		}
		response, err := http.Get("http://" + addr + netrpc.DefaultDebugPath)
		if err != nil {
			t.Fatal(err)
		}
		page, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if !strings.Contains(string(page), "Arith.Add(netrpc_test.Args, *netrpc_test.Reply)") || !strings.Contains(string(page), "Extra") {
			t.Errorf("the debug page is\n%s", page)
		}
	}
	for _, path := range []string{netrpc.DefaultRPCPath, netrpc.DefaultDebugPath} {
		r := httptest.NewRequest(http.MethodConnect, path, nil)
		r.URL.Path = path
		if _, pattern := http.DefaultServeMux.Handler(r); pattern != "" {
			t.Errorf("%s is on http.DefaultServeMux as %q", path, pattern)
		}
	}
	// A server is also a handler by itself.
	c, err := netrpc.DialHTTPPath("tcp", serveHTTP(t, quiet(new(Arith))), "/any/path")
	mustAdd(t, client(t, c, err))
}

// net/rpc: expected timeout based alternatives to functions for rpc.Dial, rpc.DialHTTP,
// rpc.DialHTTPPath.
func TestIssue15236Timeouts(t *testing.T) {
	// The kernel accepts the connection, but there is no answer.
	l := listen(t)
	defer l.Close()
	silent := l.Addr().String()
	const short = 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	for name, dial := range map[string]func() (*netrpc.Client, error){
		"DialHTTPTimeout":     func() (*netrpc.Client, error) { return netrpc.DialHTTPTimeout("tcp", silent, short) },
		"DialHTTPPathTimeout": func() (*netrpc.Client, error) { return netrpc.DialHTTPPathTimeout("tcp", silent, "/x", short) },
		"DialHTTPContext":     func() (*netrpc.Client, error) { return netrpc.DialHTTPContext(ctx, "tcp", silent) },
		"DialHTTPPathContext": func() (*netrpc.Client, error) { return netrpc.DialHTTPPathContext(ctx, "tcp", silent, "/x") },
		"DialContext with TLS": func() (*netrpc.Client, error) {
			return (&netrpc.Dialer{Timeout: short, TLS: insecure}).Dial(t.Context(), "tcp", silent)
		},
		"with a token": func() (*netrpc.Client, error) {
			return (&netrpc.Dialer{Timeout: short, Token: "x"}).Dial(t.Context(), "tcp", silent)
		},
		// A connection that is never established.
		"DialTimeout": func() (*netrpc.Client, error) { return blackHole(short).Dial(context.Background(), "tcp", silent) },
		"DialContext": func() (*netrpc.Client, error) { return blackHole(0).Dial(ctx, "tcp", silent) },
	} {
		if _, err := dial(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want that the deadline is exceeded", name, err)
		}
	}
	exactTimeouts(t)
	// With an answer they connect.
	s := quiet(new(Arith))
	addr, web := serve(t, s, nil), serveHTTP(t, s)
	for _, dial := range []func() (*netrpc.Client, error){
		func() (*netrpc.Client, error) { return netrpc.DialTimeout("tcp", addr, time.Minute) },
		func() (*netrpc.Client, error) { return netrpc.DialContext(t.Context(), "tcp", addr) },
		func() (*netrpc.Client, error) { return netrpc.DialHTTPTimeout("tcp", web, time.Minute) },
		func() (*netrpc.Client, error) { return netrpc.DialHTTPPathContext(t.Context(), "tcp", web, "/x") },
	} {
		c, err := dial()
		mustAdd(t, client(t, c, err))
	}
	// Calls have a timeout, too.
	w := newWaits()
	slow := dial(t, serve(t, quiet(w), nil))
	defer close(w.release)
	ctx, cancel = context.WithTimeout(t.Context(), short)
	defer cancel()
	if err := slow.CallContext(ctx, "Waits.Here", &Args{}, new(Reply)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("CallContext: %v, want that the deadline is exceeded", err)
	}
}

// exactTimeouts measures the timeouts of the dialers without an answer, in memory, where time is
// exact.
func exactTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(ansertest.Network)
		l := network.Listen("silent")
		defer l.Close()
		for _, c := range []struct {
			timeout, context, want time.Duration
		}{
			{0, time.Hour, 5 * time.Second}, {time.Minute, time.Hour, time.Minute}, {time.Minute, time.Second, time.Second}, {-1, time.Hour, time.Hour},
		} {
			for name, d := range map[string]netrpc.Dialer{
				"CONNECT": {}, "TLS": {TLS: insecure}, "a login": {Token: "x", InsecureToken: true},
				"a connection": {Net: func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}},
			} {
				d.Timeout = c.timeout
				if d.Net == nil {
					d.Net = network.Dial
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.context)
				began := time.Now()
				var err error
				if name == "CONNECT" {
					_, err = d.DialHTTP(ctx, "", "silent", "")
				} else {
					_, err = d.Dial(ctx, "", "silent")
				}
				if took := time.Since(began); took != c.want || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s with a timeout of %v, a context of %v: %v after %v, want it after %v", name, c.timeout, c.context, err, took, c.want)
				}
				cancel()
			}
		}
	})
}

// blackHole returns a dialer whose connections are never established.
func blackHole(timeout time.Duration) *netrpc.Dialer {
	return &netrpc.Dialer{Timeout: timeout, Net: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
}

// Proposal: support custom method names in net/rpc.
func TestIssue16449CustomNames(t *testing.T) {
	s := quiet()
	arith := new(Arith)
	for name, f := range map[string]any{
		"mul": arith.Mul, "method_name": arith.Add, "a/path/to": arith.Add, "Zähler.Addiere": arith.Add,
		"plain": func(ctx context.Context, in *Args) (*Reply, error) { return &Reply{in.A - in.B}, ctx.Err() },
	} {
		if err := s.RegisterFunc(name, f); err != nil {
			t.Fatal(err)
		}
	}
	addr, web := serve(t, s, nil), serve(t, s, jsonrpc.NewServerCodec)
	c, err := stock.Dial("tcp", addr)
	client(t, c, err)
	j, err := jsonrpc.Dial("tcp", web)
	client(t, j, err)
	for name, want := range map[string]int{"mul": 12, "method_name": 8, "a/path/to": 8, "Zähler.Addiere": 8, "plain": 4} {
		for _, c := range []caller{c, j} {
			var reply Reply
			if err := c.Call(name, &Args{6, 2}, &reply); err != nil || reply.C != want {
				t.Errorf("%s: %v, %v, want %d", name, reply, err, want)
			}
		}
	}
	for _, wrong := range []any{nil, 7, func() {}, func(*Args) error { return nil }, (func(*Args, *Reply) error)(nil)} {
		if err := s.RegisterFunc("wrong", wrong); err == nil {
			t.Errorf("%T is served", wrong)
		}
	}
}

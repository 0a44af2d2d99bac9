package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

func parse(t *testing.T, text string) *gateway.Config {
	t.Helper()
	c, err := gateway.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// named is a service whose reply is the name of the instance.
func named(name string) func(s *anser.Server) {
	return func(s *anser.Server) {
		anser.Handle(s, "Who.Am", func(context.Context, *anser.None) (*struct{ Name string }, error) {
			return &struct{ Name string }{name}, nil
		})
	}
}

// A method that two services have is called by its full name, or by a route. Routes choose by host,
// header, path and share, in the protocols that have them.
func TestRoutes(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "one", Version: "1"}, named("one"))
	serve(t, r, registry.Instance{Service: "two", Version: "1"}, named("two v1"))
	serve(t, r, registry.Instance{Service: "two", Version: "2", Group: "canary"}, named("two v2"))
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "one", 1)
	await(t, g, "two", 1)
	url := "http://" + addr
	who := func(path, want string, headers ...string) {
		t.Helper()
		if status, body := post(t, url+path, `{}`, headers...); status != 200 || body != `{"Name":"`+want+`"}` {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
	}
	who("/one/Who.Am", "one")
	refused := g.Stats().Refused
	if status, body := post(t, url+"/Who.Am", `{}`); status != 400 || !strings.Contains(body, "is in the services one, two: call one/Who.Am, or give the gateway a route") {
		t.Errorf("%d %s", status, body)
	}
	if _, err := callGRPC(t, addr, "Who.Am", nil); err == nil || !strings.Contains(err.Error(), "is in the services one, two") {
		t.Error(err)
	}
	if g.Stats().Refused != refused+2 {
		t.Error("the refusals are not counted")
	}
	if err := g.Apply(parse(t, `
routes:
- {headers: {x-beta: "*"}, to: [{service: two, version: "2"}]}
- {path: /shop, strip: true, to: [{service: two, group: canary, weight: 0}, {service: two, version: "1", weight: 5}]}
- {host: none.example.org, to: [{service: three}]}
- {host: "*.example.org", to: [{service: one}]}
`)); err != nil {
		t.Fatal(err)
	}
	who("/Who.Am", "two v2", "X-Beta", "yes")
	who("/shop/Who.Am", "two v1")
	who("/shop/two/Who.Am", "two v1")
	who("/one/Who.Am", "one", "X-Beta", "yes") // the service in the path is stronger
	if out, err := callGRPC(t, addr, "Who.Am", nil); err == nil {
		t.Errorf("without a route: %q", out)
	}
	ctx := anser.WithMetadata(t.Context(), anser.Metadata{"x-beta": "1"})
	if out, err := callGRPCWith(t, ctx, addr, "Who.Am", nil); err != nil || !strings.Contains(string(out), "two v2") {
		t.Errorf("gRPC with a header: %q, %v", out, err)
	}
	if status, body := postHost(t, url+"/Who.Am", "api.example.org"); status != 200 || !strings.Contains(body, `"one"`) {
		t.Errorf("by host: %d %s", status, body)
	}
	if status, body := postHost(t, url+"/Who.Am", "none.example.org"); status != 501 || !strings.Contains(body, "leads to the service three, which does not have it") {
		t.Errorf("a route to a service that is not there: %d %s", status, body)
	}
	if status, body := postHost(t, url+"/Who.Am", "example.org"); status != 400 {
		t.Errorf("a host that no route has: %d %s", status, body)
	}
}

func postHost(t *testing.T, url, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// A route shares its requests by the weights of its destinations.
func TestShares(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "who", Version: "1"}, named("v1"))
	serve(t, r, registry.Instance{Service: "who", Version: "2"}, named("v2"))
	g, addr := start(t, r, parse(t, `routes: [{path: /Who.Am, to: [{service: who, version: "1", weight: 80}, {service: who, version: "2", weight: 20}]}]`))
	await(t, g, "who", 1)
	seen := make(map[string]int)
	for range 500 {
		_, body := post(t, "http://"+addr+"/Who.Am", `{}`)
		seen[body]++
	}
	if n := seen[`{"Name":"v2"}`]; n < 50 || n > 160 || len(seen) != 2 { // 100 expected, 7 standard deviations at most
		t.Errorf("of 500 calls: %v", seen)
	}
}

// Requests that are not calls go to HTTP servers, with their headers, events as they come, and
// upgrades.
func TestProxy(t *testing.T) {
	next := make(chan struct{})
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/base/events":
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				w.(http.Flusher).Flush()
				<-next
			}
		case "/base/upgrade":
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			rw.Flush()
			line, _ := rw.ReadString('\n')
			rw.WriteString("echo " + line)
			rw.Flush()
		case "/base/abort":
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprintf(w, "%s %s host=%s for=%s caller=%q", r.Method, r.URL.RequestURI(), r.Host, r.Header.Get("X-Forwarded-For"), r.Header.Get("Gateway-Caller"))
		}
	}))
	defer back.Close()
	r := registry.NewMemory()
	g, addr := start(t, r, parse(t, `
routes:
- {path: /old, strip: true, to: [{url: "`+back.URL+`/base"}]}
- {path: /dead, to: [{url: "http://127.0.0.1:1"}]}
`))
	url := "http://" + addr
	status, body := post(t, url+"/old/a%2Fb?x=1", "body", "Gateway-Caller", "liar", "X-Forwarded-For", "10.1.1.1")
	if want := `POST /base/a%2Fb?x=1 host=` + addr + ` for=10.1.1.1, 127.0.0.1 caller=""`; status != 200 || body != want {
		t.Errorf("%d %s\nwant %s", status, body, want)
	}
	if status, body := post(t, url+"/dead/x", ""); status != 503 || !strings.Contains(body, "does not answer") || g.Stats().ProxyFailed != 1 {
		t.Errorf("%d %s", status, body)
	}
	if status, body := post(t, url+"/nothing/x", ""); status != 404 || !strings.Contains(body, `method \"nothing.x\" is not served here`) {
		t.Errorf("%d %s", status, body)
	}
	resp, err := http.Get(url + "/old/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 3 {
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		lines.ReadString('\n')
		next <- struct{}{}
	}
	if resp, err := http.Get(url + "/old/abort"); err == nil {
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Error("an answer that was cut off looks complete")
		}
		resp.Body.Close()
	}
	upgrade(t, addr)
}

// upgrade speaks as over a WebSocket through the gateway.
func upgrade(t *testing.T, addr string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/old/upgrade", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	both, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != 101 || !ok {
		t.Fatalf("status %d, %T", resp.StatusCode, resp.Body)
	}
	defer both.Close()
	fmt.Fprintln(both, "hello")
	if line, err := bufio.NewReader(both).ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// The error of a route to instances that are not there names them.
func TestEmptySubset(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	g, addr := start(t, r, parse(t, `
timeout: 100ms
routes:
- {path: /new, strip: true, to: [{service: arith, group: canary, version: "9.0"}]}
- {headers: {x-old: "1"}, to: [{service: arith, version: "9.0"}]}
`))
	await(t, g, "arith", 1)
	if status, body := post(t, "http://"+addr+"/new/Arith.Mul", `{"A":7,"B":8}`); status != 503 || !strings.Contains(body, `no instance of \"arith, group canary, version 9.0\" is known`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := post(t, "http://"+addr+"/Arith.Mul", `{"A":7,"B":8}`, "X-Old", "1"); status != 503 || !strings.Contains(body, `no instance of \"arith, version 9.0\" is known`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A":7,"B":8}`, "Request-Timeout", "60"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

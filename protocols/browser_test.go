package protocols_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// What pages of other sites can make a browser send calls no method, unless their origin is
// allowed.
func TestBrowsers(t *testing.T) {
	var calls atomic.Int64
	count := anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			calls.Add(1)
			return next(ctx, inv)
		}
	})
	own := anser.Protocols(protocols.HTTP(protocols.AllowOrigins("https://app.example"), protocols.AllowHosts("intranet.example")))
	_, address := serveWith(t, own, count)
	for name, row := range map[string]struct {
		method, kind, host string
		header             map[string]string
		status             int
		called             bool
	}{
		"no browser":           {kind: "application/json", status: 200, called: true},
		"own page":             {kind: "application/json", header: map[string]string{"Origin": "http://" + address}, status: 200, called: true},
		"own page, other port": {kind: "application/json", header: map[string]string{"Origin": "http://127.0.0.1:1"}, status: 403},
		"allowed page":         {kind: "application/json", header: map[string]string{"Origin": "https://app.example"}, status: 200, called: true},
		"other page":           {kind: "application/json", header: map[string]string{"Origin": "https://evil.example"}, status: 403},
		"page without origin":  {kind: "application/json", header: map[string]string{"Origin": "null"}, status: 403},
		"form":                 {kind: "text/plain", status: 415},
		"form of other page":   {kind: "text/plain", header: map[string]string{"Origin": "https://evil.example"}, status: 403},
		"urlencoded":           {kind: "application/x-www-form-urlencoded", status: 415},
		"no type":              {status: 415},
		"rebound name":         {kind: "application/json", host: "evil.example", header: map[string]string{"Origin": "http://evil.example"}, status: 403},
		"rebound name, GET":    {method: "GET", host: "evil.example", status: 403},
		"name of this machine": {kind: "application/json", host: "intranet.example", header: map[string]string{"Origin": "http://intranet.example"}, status: 200, called: true},
		"image":                {method: "GET", header: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: 403},
		"GET":                  {method: "GET", status: 405},
		"preflight":            {method: "OPTIONS", header: map[string]string{"Origin": "https://app.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}, status: 204},
		"other preflight":      {method: "OPTIONS", header: map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}, status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			if row.method == "" {
				row.method = "POST"
			}
			r, err := http.NewRequestWithContext(t.Context(), row.method, "http://"+address+"/Arith/Mul?encoding=json&message=%7B%7D", strings.NewReader(`{"A":7,"B":8}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = row.host
			if row.kind != "" {
				r.Header.Set("Content-Type", row.kind)
			}
			for k, v := range row.header {
				r.Header.Set(k, v)
			}
			before := calls.Load()
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != row.status {
				t.Errorf("the status is %d, want %d", resp.StatusCode, row.status)
			}
			if called := calls.Load() > before; called != row.called {
				t.Errorf("the method was called: %v", called)
			}
			allowed := resp.Header.Get("Access-Control-Allow-Origin")
			if want := row.header["Origin"] == "https://app.example"; (allowed != "") != want {
				t.Errorf("Access-Control-Allow-Origin is %q", allowed)
			}
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// A page without TLS has another origin than a server with TLS of the same name. An attacker on the
// network can write such a page, and the browser would add its client certificate to the request.
// If TLS ends at a proxy, only the browser knows the difference.
func TestPagesWithoutTLS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	_, secured := serve(t, anser.TLS(a.Server(t, true)))
	_, address := serve(t)
	transport := &http.Transport{TLSClientConfig: a.Client(t)}
	defer transport.CloseIdleConnections()
	for name, row := range map[string]struct {
		url, origin, site string
		status            int
	}{
		"own page":          {"https://" + secured, "https://" + secured, "same-origin", 200},
		"without TLS":       {"https://" + secured, "http://" + secured, "", 403},
		"own page by proxy": {"http://" + address, "https://" + address, "same-origin", 200},
		"no TLS by proxy":   {"http://" + address, "http://" + address, "cross-site", 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", row.url+"/Arith.Mul", strings.NewReader(`{"A":7,"B":8}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", row.origin)
		if row.site != "" {
			r.Header.Set("Sec-Fetch-Site", row.site)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != row.status {
			t.Errorf("%s: the status is %d, want %d", name, resp.StatusCode, row.status)
		}
	}
}

// Names that are not the canonical ones reach no method, and no policy for another name, also after
// calls by those names.
func TestPathsAreCanonical(t *testing.T) {
	_, address := serve(t)
	for _, path := range []string{"/Arith/Mul", "/Arith.Mul", "/jsonrpc"} {
		resp, err := http.Post("http://"+address+path, "application/json", strings.NewReader(`{"A":7,"B":8}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("%s is answered with %d", path, resp.StatusCode)
		}
	}
	for _, path := range []string{
		"/arith/mul", "/Arith/mul", "/Arith//Mul", "//Arith/Mul", "/Arith/Mul/", "/Arith/./Mul", "/x/../Arith/Mul", "/Arith%2FMul", "/%41rith/Mul",
		"//Arith.Mul", "/Arith.Mul/", "/Arith..Mul",
		"/Arith/Mul%00", "/Arith/Mul;x", "/Arith/.Mul", "/Arith\\Mul", "/Anser/Methods", "/Anser.Methods", "/Arith/Mul%20",
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address, strings.NewReader(`{"A":7,"B":8}`))
		if err != nil {
			t.Fatal(err)
		}
		if r.URL.Opaque = path; strings.HasPrefix(path, "//") { // which would be sent as a host
			r.URL.Opaque, r.URL.Path = "", path
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 404 && resp.StatusCode != 400 {
			t.Errorf("%s is answered with %d", path, resp.StatusCode)
		}
	}
	resp, err := http.Post("http://"+address+"/jsonrpc", "application/json", strings.NewReader(`{"jsonrpc":"2.0","method":"/Arith/Mul","params":{"A":7,"B":8},"id":1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), "-32601") {
		t.Errorf("JSON-RPC answers %s, %v", b, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

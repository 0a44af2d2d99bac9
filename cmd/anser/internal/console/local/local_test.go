package local_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/local"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

func TestGuard(t *testing.T) {
	h := local.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip)} }
	for _, c := range []struct {
		name, method, host string
		local              net.Addr
		header             map[string]string
		want               int
	}{
		{"curl", "GET", "127.0.0.1:8980", at("127.0.0.1"), nil, 200},
		{"localhost", "GET", "localhost:8980", at("::1"), nil, 200},
		{"the page", "GET", "127.0.0.1:8980", at("127.0.0.1"), map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		{"its origin", "GET", "127.0.0.1:8980", at("127.0.0.1"), map[string]string{"Origin": "http://127.0.0.1:8980"}, 200},
		{"a link", "GET", "127.0.0.1:8980", at("127.0.0.1"), map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{"a frame", "GET", "127.0.0.1:8980", at("127.0.0.1"), map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		{"a fetch", "GET", "127.0.0.1:8980", at("127.0.0.1"), map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		{"another port", "GET", "127.0.0.1:8980", at("127.0.0.1"), map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403},
		{"an old browser", "GET", "127.0.0.1:8980", at("127.0.0.1"), map[string]string{"Origin": "http://evil.example"}, 403},
		{"rebinding", "GET", "evil.example:8980", at("127.0.0.1"), nil, 403},
		{"another interface", "GET", "10.0.0.7:8980", at("10.0.0.7"), nil, 403},
		{"a change", "POST", "127.0.0.1:8980", at("127.0.0.1"), nil, 405},
	} {
		r := httptest.NewRequest(c.method, "/api/system", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.local))
		r.Host = c.host
		for name, value := range c.header {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || !strings.Contains(w.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.want)
		}
	}
}

func TestListen(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:0": "has no login", ":8980": "has no login", "example.com:1": "has no login", "127.0.0.1": "has no port", "127.0.0.1:x": "listen on",
	} {
		if _, err := local.Listen(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	l, err := local.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

package site_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
)

// raw sends bytes to a console, and returns the statuses of its answers until it closes.
func raw(t *testing.T, at, text string) (statuses []int) {
	t.Helper()
	host := strings.TrimSuffix(strings.TrimPrefix(at, "http://"), "/")
	c, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, strings.ReplaceAll(text, "HOST", host)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for {
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses
		}
		statuses = append(statuses, answer.StatusCode)
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.Close {
			return statuses
		}
	}
}

// What a proxy in front may read in another way than the console is refused, and a path in another
// form reaches no other route.
func TestSmuggledRequests(t *testing.T) {
	s := open(t, site.Options{Access: site.Access{Users: accesstest.Users(t)}})
	const rest = "Connection: close\r\n\r\n"
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"two lengths":             {"POST /api/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\nContent-Length: 3\r\n" + rest + "{}", 400},
		"a length and chunks":     {"POST /api/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n" + rest + "0\r\n\r\n", 400},
		"another encoding":        {"POST /api/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: xchunked\r\n" + rest, 501},
		"two hosts":               {"GET /api/session HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\n" + rest, 400},
		"no host":                 {"GET /api/session HTTP/1.1\r\n" + rest, 400},
		"another host in a URL":   {"GET http://evil.example/api/session HTTP/1.1\r\nHost: HOST\r\n" + rest, 403},
		"a space in a header":     {"GET /api/session HTTP/1.1\r\nHost : HOST\r\n" + rest, 400},
		"a header over two lines": {"GET /api/system HTTP/1.1\r\nHost: HOST\r\nX-A: b\r\n Cookie: a=b\r\n" + rest, 401},
		"dots":                    {"GET /x/../api/system HTTP/1.1\r\nHost: HOST\r\n" + rest, 307},
		"escaped dots":            {"GET /x/%2e%2e/api/system HTTP/1.1\r\nHost: HOST\r\n" + rest, 404},
		"an escaped slash":        {"GET /api%2fsystem HTTP/1.1\r\nHost: HOST\r\n" + rest, 404},
		"two slashes":             {"GET //api/system HTTP/1.1\r\nHost: HOST\r\n" + rest, 307},
		"files above the page":    {"GET /..%2f..%2fsite.go HTTP/1.1\r\nHost: HOST\r\n" + rest, 404},
		"a slash at the end":      {"GET /api/system/ HTTP/1.1\r\nHost: HOST\r\n" + rest, 401},
		"capitals":                {"GET /API/system HTTP/1.1\r\nHost: HOST\r\n" + rest, 404},
		"an unknown method":       {"BREW /api/system HTTP/1.1\r\nHost: HOST\r\n" + rest, 401},
		"a tunnel":                {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n" + rest, 404},
		"trace":                   {"TRACE / HTTP/1.1\r\nHost: HOST\r\n" + rest, 405},
		"a large header":          {"GET /api/session HTTP/1.1\r\nHost: HOST\r\nX-A: " + strings.Repeat("a", 64<<10) + "\r\n" + rest, 431},
	} {
		if got := raw(t, s.URL(), c.text); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %v, want %d", name, got, c.want)
		}
	}
}

// Bodies are bounded in size and type before they are read.
func TestHostileBodies(t *testing.T) {
	s := open(t, site.Options{Access: site.Access{Users: accesstest.Users(t)}, Audit: filepath.Join(t.TempDir(), "audit.jsonl")})
	b := newBrowser(t, s.URL())
	large := strings.Repeat(" ", 2<<20)
	if status, text, _ := b.send("POST", "/api/login", large+"{}"); status != 400 {
		t.Errorf("a large login: %d %s", status, text)
	}
	if status, text, _ := b.send("POST", "/api/login", `{"user":"look","password":"`+accesstest.Password+`"}`, "Content-Type", "text/plain; x=application/json"); status != 400 {
		t.Errorf("a login that a form of another site may send: %d %s", status, text)
	}
	if status, text, _ := b.send("POST", "/api/login", `{"user":"look","password":"`+accesstest.Password+`"}`, "Content-Type", "application/json; charset=utf-8"); status != 204 {
		t.Errorf("a login in UTF-8: %d %s", status, text)
	}
	b.login("operate")
	for _, c := range []struct {
		path, body, kind string
		want             int
	}{
		{"/api/rules/a/check", `{"text":"rules: {}"}`, "Application/JSON;charset=UTF-8", 200},
		{"/api/rules/a/check", `{"text":"rules: {}"}`, "application/json, text/plain", 415},
		{"/api/canary", large + "{}", "application/json", 413},
		{"/api/canary", "{}", "text/plain", 415},
		{"/api/canary", "a=b", "application/x-www-form-urlencoded", 415},
		{"/api/canary", strings.Repeat("[", 100_000), "application/json", 400},
		{"/api/canary", `{"service":"a"}{"service":"b"}`, "application/json", 400},
		{"/api/call", `{"service":"a","method":"B.C","request":` + strings.Repeat("[", 50_000) + `}`, "application/json", 400},
		{"/api/rules/a/check", `{"text":"` + strings.Repeat("a: &a [*a,*a]\\n", 1000) + `"}`, "application/json", 200},
	} {
		if status, text, _ := b.send("POST", c.path, c.body, "Content-Type", c.kind); status != c.want {
			t.Errorf("%s with %.40q of %s: %d %.200s, want %d", c.path, c.body, c.kind, status, text, c.want)
		}
	}
}

// A body that does not come is not waited for without end: the peer is told so, or the connection
// closes.
func TestSlowBodies(t *testing.T) {
	s := open(t, site.Options{Access: site.Access{Users: accesstest.Users(t)}, BodyWithin: 200 * time.Millisecond})
	began := time.Now()
	got := raw(t, s.URL(), "POST /api/login HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if len(got) > 1 || len(got) == 1 && got[0] != 400 || time.Since(began) > 50*time.Second {
		t.Errorf("%v after %v", got, time.Since(began))
	}
	// A route without a body does not wait for one either.
	began = time.Now()
	raw(t, s.URL(), "GET /api/session HTTP/1.1\r\nHost: HOST\r\nContent-Length: 100\r\n\r\n{")
	if d := time.Since(began); d > 50*time.Second {
		t.Errorf("a body that no one reads was waited for during %v", d)
	}
}

// A name, a reason or a path with line breaks makes no entry of its own in the audit log, and no
// header of its own in an answer.
func TestInjectedLines(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	b := newBrowser(t, open(t, site.Options{Audit: log}).URL())
	b.session()
	const forged = "x\\n{\\\"sequence\\\":2,\\\"user\\\":\\\"root\\\"}\\u2028\\u001b[2J"
	b.send("POST", "/api/faultinjection", `{"service":"arith","share":1,"code":"internal","until":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`","reason":"`+forged+`"}`)
	b.send("DELETE", "/api/faultinjection?service=arith&reason=x%0a%7b%22user%22%3a%22root%22%7d", "")
	sum, err := audit.Verify(log, "")
	data, _ := os.ReadFile(log)
	if err != nil || int(sum.Entries) != strings.Count(string(data), "\n") || sum.Entries < 3 || strings.Contains(string(data), "\x1b") || strings.Contains(string(data), `"user":"root"`) {
		t.Errorf("%+v, %v:\n%s", sum, err, data)
	}
	_, _, answer := b.send("GET", "/api/none%0d%0aX-Evil:%201", "")
	if answer.Header.Get("X-Evil") != "" {
		t.Errorf("the header is %v", answer.Header)
	}
	if err := access.SetUser(filepath.Join(t.TempDir(), "users.json"), "a\nb", access.Look, accesstest.Password); err == nil {
		t.Error("a user with a line break in the name was added")
	}
}

// A cookie of a console with HTTPS is never sent without it.
func TestCookiesOverHTTP(t *testing.T) {
	users := accesstest.Users(t)
	for at, secure := range map[string]bool{"": false, "https://console.example.org/": true} {
		b := newBrowser(t, open(t, site.Options{Access: site.Access{Users: users}, URL: at}).URL())
		_, _, answer := b.send("POST", "/api/login", fmt.Sprintf(`{"user":"look","password":%q}`, accesstest.Password))
		c := answer.Cookies()[0]
		if c.Secure != secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Domain != "" {
			t.Errorf("at %q: %v", at, c)
		}
	}
}

// Peers that take no answer end.
func TestViewersThatDoNotRead(t *testing.T) {
	s := open(t, site.Options{})
	host := strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/")
	for range 50 {
		c, err := new(net.Dialer).DialContext(context.Background(), "tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /api/events HTTP/1.1\r\nHost: %s\r\n\r\n", host)
	}
	b := newBrowser(t, s.URL())
	if status, text, _ := b.send("GET", "/api/system", ""); status != 200 {
		t.Errorf("next to them: %d %s", status, text)
	}
} // the console ends at once, although they are there

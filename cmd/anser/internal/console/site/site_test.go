package site_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
	"github.com/anser-rpc/anser/registry"
)

// open starts a console of an empty registry on a free port of a loopback address.
func open(t *testing.T, o site.Options) *site.Site {
	t.Helper()
	return openWith(t, registry.NewMemory(), o)
}

// openWith starts a console of a registry.
func openWith(t *testing.T, reg *registry.Memory, o site.Options) *site.Site {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	o.Registry = site.Registry{Name: "memory://", Kind: "memory", Resolver: reg}
	o.Dial = func(target string, opts ...anser.DialOption) (*anser.Client, error) {
		if !strings.Contains(target, ":") {
			target = "memory:///" + target
		}
		return anser.Dial(target, append(opts, scheme(reg), anser.NoSnapshot(), silent)...)
	}
	s, err := site.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// browser is a client with cookies.
type browser struct {
	*http.Client
	t    *testing.T
	at   string
	csrf string
}

func newBrowser(t *testing.T, at string) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // of a test's certificate
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(client.CloseIdleConnections)
	return &browser{Client: client, t: t, at: strings.TrimSuffix(at, "/")}
}

// send makes a request, of which it reads no more than the beginning of the answer: some never end.
func (b *browser) send(method, path, body string, header ...string) (status int, text string, answer *http.Response) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, b.at+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-CSRF-Token", b.csrf)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	answer, err = b.Do(r)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	if answer.Header.Get("Content-Type") == "text/event-stream" {
		return answer.StatusCode, "", answer
	}
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.StatusCode, string(data), answer
}

func (b *browser) login(user string) {
	b.t.Helper()
	if status, text, _ := b.send("POST", "/api/login", fmt.Sprintf(`{"user":%q,"password":%q}`, user, accesstest.Password)); status != 204 {
		b.t.Fatalf("the login of %s: %d %s", user, status, text)
	}
	b.session()
}

type session struct {
	User, CSRF, Login string
	Changes           bool
	May               []string
	ReadOnly          string `json:"read_only"`
}

func (b *browser) session() (s session) {
	b.t.Helper()
	_, text, _ := b.send("GET", "/api/session", "")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
	b.csrf = s.CSRF
	return s
}

// Every route is in the table: for requests without a session, and of the roles look, operate and
// administer.
func TestRolesOfAllRoutes(t *testing.T) {
	want := map[string][4]int{
		"/":                      {200, 200, 200, 200},
		"/api/":                  {401, 404, 404, 404},
		"GET /api/system":        {401, 200, 200, 200},
		"GET /api/instances":     {401, 200, 200, 200},
		"GET /api/instances/map": {401, 200, 200, 200},
		"GET /api/registries":    {401, 200, 200, 200},
		"GET /api/calls":         {401, 200, 200, 200},
		"GET /api/calls/live":    {401, 404, 404, 404}, // there is no service
		"GET /api/trace":         {401, 400, 400, 400},
		"GET /api/search":        {401, 200, 200, 200},
		"GET /api/changes":       {401, 200, 200, 200},
		"GET /api/history":       {401, 400, 400, 400},
		"GET /api/history/heat":  {401, 400, 400, 400},
		"GET /api/connections":   {401, 404, 404, 404},
		"GET /api/events":        {401, 200, 200, 200},
		"GET /api/arena":         {401, 200, 200, 200},
		"GET /api/files":         {401, 200, 200, 200},

		"GET /api/services/{service}":                  {401, 404, 404, 404},
		"GET /api/services/{service}/methods/{method}": {401, 404, 404, 404},
		"GET /api/services/{service}/effect":           {401, 404, 404, 404},

		"GET /api/session":       {200, 200, 200, 200},
		"POST /api/login":        {400, 400, 400, 400},
		"POST /api/logout":       {401, 204, 204, 204},
		"GET /api/users":         {401, 403, 403, 200},
		"GET /api/oidc/login":    {404, 404, 404, 404},
		"GET /api/oidc/callback": {404, 404, 404, 404},
		"POST /api/oidc/logout":  {404, 404, 404, 404},

		"POST /api/instances":                {401, 403, 400, 400},
		"GET /api/ruleschema":                {401, 200, 200, 200},
		"GET /api/rules/{service}":           {401, 200, 200, 200},
		"GET /api/rules/{service}/history":   {401, 200, 200, 200},
		"POST /api/rules/{service}/check":    {401, 400, 400, 400},
		"POST /api/rules/{service}/dryrun":   {401, 400, 400, 400},
		"PUT /api/rules/{service}":           {401, 403, 400, 400},
		"POST /api/rules/{service}/restore":  {401, 403, 400, 400},
		"GET /api/canary":                    {401, 200, 200, 200},
		"GET /api/canary/{service}":          {401, 404, 404, 404},
		"POST /api/canary":                   {401, 403, 400, 400},
		"DELETE /api/canary/{service}":       {401, 403, 404, 404},
		"GET /api/faultinjection":            {401, 400, 400, 400},
		"POST /api/faultinjection":           {401, 403, 400, 400},
		"DELETE /api/faultinjection":         {401, 403, 400, 400},
		"GET /api/schema/{service}/{method}": {401, 502, 502, 502}, // there is no instance
		"POST /api/call":                     {401, 403, 400, 400},
		"POST /api/call/stream":              {401, 403, 400, 400},
		"GET /api/audit":                     {401, 200, 200, 200},

		"GET /api/files/{service}":                   {401, 404, 404, 404}, // there is no instance
		"GET /api/files/{service}/{name}":            {401, 404, 404, 404},
		"GET /api/files/{service}/{name}/stat":       {401, 400, 400, 400}, // there is no path
		"GET /api/files/{service}/{name}/content":    {401, 403, 400, 400},
		"PUT /api/files/{service}/{name}/content":    {401, 403, 415, 415},
		"DELETE /api/files/{service}/{name}/content": {401, 403, 400, 400},
	}
	users, log := accesstest.Users(t), filepath.Join(t.TempDir(), "audit.jsonl")
	s := open(t, site.Options{Access: site.Access{Users: users}, Audit: log, Arena: "../../../../../arena/results/report.html"})
	readOnly := open(t, site.Options{Access: site.Access{Users: users}})
	seen := make(map[string]bool)
	for i, user := range []string{"", "look", "operate", "administer"} {
		b, beyond := newBrowser(t, s.URL()), newBrowser(t, readOnly.URL())
		if user != "" {
			b.login(user)
			beyond.login(user)
		}
		for _, pattern := range s.Patterns() {
			seen[pattern] = true
			statuses, ok := want[pattern]
			if !ok {
				t.Fatalf("the route %q has no row in the table", pattern)
			}
			method, path, ok := strings.Cut(pattern, " ")
			if !ok {
				method, path = "GET", pattern
			}
			if pattern == "POST /api/logout" {
				continue // at last
			}
			path = strings.NewReplacer("{service}", "none", "{method}", "None.Call", "{name}", "None").Replace(path)
			status, text, answer := b.send(method, path, "")
			if status != statuses[i] {
				t.Errorf("%s of %q: %d %s, want %d", pattern, user, status, text, statuses[i])
			}
			if !strings.Contains(answer.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || answer.Header.Get("X-Frame-Options") != "DENY" {
				t.Errorf("%s of %q may be shown in a frame: %v", pattern, user, answer.Header)
			}
			// What operators may do and others may not, changes something.
			status, text, _ = beyond.send(method, path, "")
			if changes := statuses[1] == 403 && statuses[2] != 403 && method != "GET"; changes && user != "" && status != 403 {
				t.Errorf("%s of %q, read-only: %d %s", pattern, user, status, text)
			}
			if user != "" && method != "GET" && method != "HEAD" {
				b2 := *b
				b2.csrf = ""
				if status, text, _ := b2.send(method, path, ""); status != 403 && pattern != "POST /api/login" && pattern != "POST /api/oidc/logout" { // the provider has a token of its own
					t.Errorf("%s of %q without a token: %d %s", pattern, user, status, text)
				}
			}
			if status, text, _ := b.send(method, path, "", "Host", "evil.example"); status != 403 {
				t.Errorf("%s of %q at a name of an attacker: %d %s", pattern, user, status, text)
			}
			if status, text, _ := b.send(method, path, "", "Sec-Fetch-Site", "cross-site"); status != 403 && !strings.Contains(path, "/oidc/") {
				t.Errorf("%s of %q from another site: %d %s", pattern, user, status, text)
			}
		}
		if status, text, _ := b.send("POST", "/api/logout", ""); status != want["POST /api/logout"][i] {
			t.Errorf("the logout of %q: %d %s", user, status, text)
		}
		if status, text, _ := b.send("GET", "/api/system", ""); status != 401 {
			t.Errorf("after the logout of %q: %d %s", user, status, text)
		}
	}
	for pattern := range want {
		if !seen[pattern] {
			t.Errorf("there is no route %q", pattern)
		}
	}
	if sum, err := audit.Verify(log, ""); err != nil || sum.Entries != 0 {
		t.Errorf("requests that were refused are in the audit log: %+v, %v", sum, err)
	}
}

// The page can be read without a session, and a colleague's link leads to it.
func TestPage(t *testing.T) {
	s := open(t, site.Options{Access: site.Access{Users: accesstest.Users(t)}})
	b := newBrowser(t, s.URL())
	for _, c := range []struct {
		method string
		header []string
		want   int
	}{
		{"GET", nil, 200},
		{"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, 403},
		{"GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"GET", []string{"Origin", "http://evil.example"}, 403},
		{"POST", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"POST", nil, 405},
	} {
		status, text, answer := b.send(c.method, "/", "", c.header...)
		if status != c.want {
			t.Errorf("%s %q: %d %.100s, want %d", c.method, c.header, status, text, c.want)
		}
		if p := answer.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
			t.Errorf("the policy is %q", p)
		}
	}
}

func TestWithoutLogin(t *testing.T) {
	b := newBrowser(t, open(t, site.Options{}).URL())
	if got := b.session(); got.Login != access.None || got.Changes || !strings.Contains(got.ReadOnly, "--audit") || strings.Join(got.May, " ") != "look administer" {
		t.Errorf("the session is %+v", got)
	}
	if status, text, _ := b.send("POST", "/api/canary", "{}"); status != 403 || !strings.Contains(text, "--audit") {
		t.Errorf("a change without a record: %d %s", status, text)
	}
	if status, text, _ := b.send("GET", "/api/rules/arith", ""); status != 200 {
		t.Errorf("rules: %d %s", status, text)
	}
	for _, path := range []string{"/", "/api/system"} {
		if status, text, _ := b.send("GET", path, "", "X-Forwarded-For", "10.0.0.1"); status != 403 {
			t.Errorf("%s through a proxy: %d %s", path, status, text)
		}
	}
}

func proxyOnThisMachine() *access.ProxyOptions {
	return &access.ProxyOptions{Header: "X-User", Role: access.Operate, From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
}

func TestProxyInFront(t *testing.T) {
	o := site.Options{Audit: filepath.Join(t.TempDir(), "audit.jsonl"), Access: site.Access{Proxy: proxyOnThisMachine()}}
	b := newBrowser(t, open(t, o).URL())
	if status, text, _ := b.send("GET", "/", ""); status != 401 {
		t.Errorf("the page without a user: %d %s", status, text)
	}
	if status, text, _ := b.send("GET", "/api/session", "", "X-User", "ada"); status != 200 || !strings.Contains(text, `"may":["look"]`) || !strings.Contains(text, "--allow-changes") {
		t.Errorf("through a proxy others reach the console: %d %s", status, text)
	}
}

func TestOptionsThatDoNotFit(t *testing.T) {
	users := accesstest.Users(t)
	proxy := &access.ProxyOptions{Header: "X-User", Role: access.Look, From: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	for want, o := range map[string]site.Options{
		"has no login":        {Listen: "0.0.0.0:0"},
		"has no login: use":   {Listen: ":0"},
		"has no port":         {Listen: "127.0.0.1"},
		"not be encrypted":    {Listen: "0.0.0.0:0", Access: site.Access{Users: users}},
		"belong together":     {Listen: "127.0.0.1:0", Certificate: "a.pem"},
		"must be recorded":    {Listen: "127.0.0.1:0", AllowChanges: true},
		"is no URL for":       {Listen: "127.0.0.1:0", URL: "console.example.org"},
		"no login: use a loo": {Listen: "127.0.0.1:0", URL: "https://console.example.org/"},
		"logs users in, and":  {Listen: "127.0.0.1:0", Access: site.Access{Users: users, Proxy: proxy}},
		"listen on":           {Listen: "127.0.0.1:x"},
	} {
		s, err := site.Open(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if s != nil {
			t.Errorf("%q: a console was opened", want)
		}
	}
	if err := (&site.Options{Listen: "0.0.0.0:0", Access: site.Access{Proxy: proxy}}).Check(); err != nil {
		t.Error(err)
	}
}

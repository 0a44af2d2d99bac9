package admin_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/telemetry"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// site is a process with a server, a client of it, and a page.
type site struct {
	*httptest.Server
	meter  *telemetry.Meter
	page   *admin.Page
	client *anser.Client
}

func newSite(t *testing.T, opts ...admin.Option) *site {
	t.Helper()
	meter := telemetry.New(telemetry.Slow(time.Millisecond))
	page, err := admin.New(meter, append([]admin.Option{admin.Name("shop")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(meter.Option(), anser.MaxConns(77))
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *[2]int) (*int, error) {
		out := in[0] * in[1]
		return &out, nil
	}, anser.MaxInFlight(9))
	anser.Handle(s, "Arith.Fail", func(context.Context, *int) (*int, error) {
		return nil, anser.Errorf(anser.NotFound, "the secret 4711")
	})
	anser.Handle(s, "Arith.Slow", func(context.Context, *int) (*int, error) {
		time.Sleep(3 * time.Millisecond)
		return new(int), nil
	})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := anser.Dial(l.Addr().String(), meter.Option())
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(page)
	t.Cleanup(func() {
		page.Close()
		h.Close()
		c.Close()
		s.Close()
		<-served
		http.DefaultClient.CloseIdleConnections()
	})
	at := &site{h, meter, page, c}
	at.call(t)
	return at
}

// call makes some calls of each kind.
func (s *site) call(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	for range 3 {
		if got, err := anser.Call[int](ctx, s.client, "Arith.Mul", &[2]int{6, 7}); err != nil || *got != 42 {
			t.Fatal(got, err)
		}
	}
	if _, err := anser.Call[int](ctx, s.client, "Arith.Fail", new(int)); anser.CodeOf(err) != anser.NotFound {
		t.Fatal(err)
	}
	if _, err := anser.Call[int](ctx, s.client, "Arith.Slow", new(int)); err != nil {
		t.Fatal(err)
	}
}

// get returns the answer to a request with the header fields.
func (s *site) get(t *testing.T, path string, header ...string) (status int, body string, h http.Header) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Header
}

var pages = []string{"/", "/methods", "/connections", "/streams", "/clients", "/registries", "/failures", "/slow", "/options", "/method?side=server&name=Arith.Mul"}

// Every page has its three forms, by the suffix or the header, and nothing of a request in it.
func TestPagesHaveThreeForms(t *testing.T) {
	s := newSite(t)
	for _, path := range pages {
		for accept, kind := range map[string]string{"*/*": "text/plain", "text/html": "text/html", "application/json": "application/json"} {
			status, body, h := s.get(t, path, "Accept", accept)
			if status != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), kind) || !strings.Contains(body, "shop") {
				t.Errorf("%s with %s: %d %s\n%.300s", path, accept, status, h.Get("Content-Type"), body)
			}
			if strings.Contains(body, "4711") {
				t.Errorf("%s as %s shows the message of an error of a handler", path, kind)
			}
			if !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s is not protected: %v", path, h)
			}
		}
	}
	for _, path := range []string{"/methods.json", "/methods.html", "/methods.txt", "/all.json", "/figures.json", "/style.css", "/page.js", "/calls", "/debug/pprof/", "/debug/pprof/goroutine?debug=1"} {
		if status, body, _ := s.get(t, path, "Accept", "text/html"); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{"/nothing", "/methods.xml", "/all.html", "/methods/more", "/debug", "/debug/pprof/none", "/flight/", "/methods.json?conns=x", "/methods.json?streams=-1", "/methods.json?streams=1000000"} {
		if status, body, _ := s.get(t, path); status != http.StatusNotFound && status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// A list of nothing is empty in JSON, and not null.
func TestEmptyLists(t *testing.T) {
	meter := telemetry.New()
	page, err := admin.New(meter)
	if err != nil {
		t.Fatal(err)
	}
	anser.NewServer(meter.Option(), anser.NoSignals()) // which does not listen
	found := registry.Scheme{Name: "test", Open: func(*url.URL) (registry.Resolver, string, error) { return registry.NewMemory(), "none", nil }}
	c, err := anser.Dial("test://h:1/none", found, meter.Option())
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(page)
	defer func() {
		page.Close()
		h.Close()
		c.Close()
		http.DefaultClient.CloseIdleConnections()
	}()
	s := &site{h, meter, page, c}
	for path, want := range map[string]string{"/all.json": `"addresses": []`, "/slow.json": `"calls": []`, "/trace.json?id=0123456789abcdef0123456789abcdef": `"calls": []`, "/clients.json": `"instances": []`, "/figures.json": `"addresses":[]`} {
		if status, body, _ := s.get(t, path); status != http.StatusOK || !strings.Contains(body, want) || strings.Contains(body, "null") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func (s *site) document(t *testing.T, path string) (d admin.Document) {
	t.Helper()
	status, body, _ := s.get(t, path)
	if status != http.StatusOK {
		t.Fatal(status, body)
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return d
}

func methodIn(d *admin.Document, side, name string) *admin.Method {
	for i := range d.Methods {
		if m := &d.Methods[i]; m.Side == side && m.Name == name {
			return m
		}
	}
	return nil
}

// The document for programs has what happened, and what is in force.
func TestDocument(t *testing.T) {
	s := newSite(t)
	d := s.document(t, "/all.json")
	if d.Format != admin.Format || d.Process.ID == "" || d.Process.Name != "shop" || d.Window <= 0 {
		t.Errorf("got %+v", d)
	}
	for _, side := range []string{"server", "client"} {
		m := methodIn(&d, side, "Arith.Mul")
		if m == nil || len(m.Codes) != 1 || m.Codes[0].Code != anser.OK || m.Codes[0].Times.Count != 3 || m.Recent == nil {
			t.Errorf("%s: got %+v", side, m)
		}
		if m := methodIn(&d, side, "Arith.Fail"); m == nil || m.Codes[0].Code != anser.NotFound {
			t.Errorf("%s: got %+v", side, m)
		}
	}
	if len(d.Servers) != 1 || len(d.Clients) != 1 {
		t.Fatalf("%d servers, %d clients", len(d.Servers), len(d.Clients))
	}
	v, c := &d.Servers[0], &d.Clients[0]
	if len(v.Connections) == 0 || v.Connections[0].Received == 0 || v.Connections[0].Sent == 0 || v.Connections[0].Protocol != "anser" {
		t.Errorf("connections: %+v", v.Connections)
	}
	if c.Conns == 0 || len(c.Connections) != c.Conns || len(c.Instances) != 1 || c.Instances[0].Status != "connected" {
		t.Errorf("client: %+v", c)
	}
	found := false
	for _, o := range v.Options {
		found = found || o.Name == "MaxConns" && o.Value == "77" && o.Set && o.Default == "100000"
		if o.Name == "MaxCalls" && o.Set {
			t.Errorf("%+v was not set", o)
		}
	}
	if !found {
		t.Errorf("MaxConns is not among %+v", v.Options)
	}
	for _, m := range v.Methods {
		if m.Name == "Arith.Mul" && (m.MaxInFlight != 9 || m.Calls != 3) {
			t.Errorf("got %+v", m)
		}
	}
	if d.Failures == nil || len(d.Failures.Calls) != 2 || d.Slow == nil || len(d.Slow.Calls) == 0 {
		t.Errorf("failures %+v, slow %+v", d.Failures, d.Slow)
	}
}

// The second of two documents has the calls between them as its rates.
func TestRates(t *testing.T) {
	s := newSite(t)
	s.document(t, "/methods.json")
	s.call(t)
	time.Sleep(250 * time.Millisecond) // documents that are asked for at once share a sample
	d := s.document(t, "/methods.json")
	m := methodIn(&d, "server", "Arith.Fail")
	if m == nil || m.Recent == nil || m.Recent.Rate <= 0 || m.Recent.Failed != m.Recent.Rate || m.Recent.P99 == 0 {
		t.Errorf("got %+v", m)
	}
}

// Without authentication, the page answers this machine alone, under names of its own.
func TestWithoutAuthentication(t *testing.T) {
	s := newSite(t, admin.AllowHosts("shop.example"))
	for _, c := range []struct {
		header []string
		want   int
	}{
		{nil, http.StatusOK},
		{[]string{"Host", "localhost:1"}, http.StatusOK},
		{[]string{"Host", "shop.example"}, http.StatusOK},
		{[]string{"Host", "evil.example"}, http.StatusForbidden},
		{[]string{"X-Forwarded-For", "10.0.0.7"}, http.StatusForbidden},
		{[]string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{[]string{"Sec-Fetch-Site", "same-origin"}, http.StatusOK},
		{[]string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{[]string{"X-Forwarded-Proto", "https"}, http.StatusForbidden},
		{[]string{"Cf-Connecting-Ip", ""}, http.StatusForbidden},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document", "Accept", "text/html"}, http.StatusOK},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document"}, http.StatusForbidden},
	} {
		if status, body, _ := s.get(t, "/options", c.header...); status != c.want {
			t.Errorf("%q: %d %s, want %d", c.header, status, body, c.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.7:1234"
	w := httptest.NewRecorder()
	s.page.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("another machine got %d", w.Code)
	}
	answer, err := http.Post(s.URL, "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST got %s", answer.Status)
	}
}

// A page that is reached from other machines, with an Authorize that looks at the address alone,
// does not answer under a name that an attacker has pointed at it.
func TestNamesThatAnAttackerPointsHere(t *testing.T) {
	const token = "0123456789abcdef"
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	page, err := admin.New(telemetry.New(), admin.AllowHosts("shop.example"), admin.Token(token),
		admin.Authorize(func(r *http.Request) bool { return strings.HasPrefix(r.RemoteAddr, "10.0.0.7:") }))
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	for _, c := range []struct {
		host, from string
		header     []string
		tls        bool
		want       int
	}{
		{"10.0.0.1:8971", "10.0.0.7:1", nil, false, 200},
		{"shop.example", "10.0.0.7:1", nil, false, 200},
		{own + ":8971", "10.0.0.7:1", nil, false, 200},
		{"evil.example:8971", "10.0.0.7:1", nil, false, 403},
		{"evil.example:8971", "10.0.0.7:1", []string{"Cookie", "a=b", "Authorization", "Bearer x"}, false, 403},
		{"evil.example:8971", "10.0.0.7:1", []string{"Authorization", "Bearer " + token}, false, 200},
		{"admin.example", "10.0.0.7:1", nil, true, 200},
		{"10.0.0.1:8971", "10.0.0.8:1", nil, false, 401},
	} {
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 8971})
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/options", nil)
		r.Host, r.RemoteAddr = c.host, c.from
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		if c.tls {
			r.TLS = new(tls.ConnectionState)
		}
		w := httptest.NewRecorder()
		if page.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

func TestToken(t *testing.T) {
	const token = "0123456789abcdef"
	s := newSite(t, admin.Token(token), admin.Token("another token of 16"))
	if status, _, h := s.get(t, "/"); status != http.StatusUnauthorized || !strings.HasPrefix(h.Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("without a token: %d %v", status, h)
	}
	for header, want := range map[string]int{
		"Bearer " + token: http.StatusOK, "Bearer another token of 16": http.StatusOK, "Bearer x": http.StatusUnauthorized,
		"Basic dTowMTIzNDU2Nzg5YWJjZGVm": http.StatusOK, "Basic eDp4": http.StatusUnauthorized,
	} {
		if status, _, _ := s.get(t, "/options", "Authorization", header); status != want {
			t.Errorf("%s: %d, want %d", header, status, want)
		}
	}
}

// The page listens where other machines reach it only with authentication and TLS.
func TestPublicAddresses(t *testing.T) {
	allow := admin.Authorize(func(*http.Request) bool { return true })
	for _, c := range []struct {
		opts []admin.Option
		want string
	}{
		{nil, "no authentication"},
		{[]admin.Option{allow}, "no TLS"},
		{[]admin.Option{allow, admin.InsecurePublic()}, ""},
	} {
		p, err := admin.New(telemetry.New(), c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		l, err := p.Listen("0.0.0.0:0")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		if err == nil {
			l.Close()
		}
	}
}

func TestListenAndServe(t *testing.T) {
	p, err := admin.New(telemetry.New())
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Serve(l) }()
	answer, err := http.Get("http://" + l.Addr().String() + "/options")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, admin.ErrClosed) {
		t.Errorf("Serve returned %v", err)
	}
	if err := p.ListenAndServe("127.0.0.1:0"); !errors.Is(err, admin.ErrClosed) {
		t.Errorf("ListenAndServe after Close returned %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestOptionsAreChecked(t *testing.T) {
	for name, opt := range map[string]admin.Option{
		"empty name": admin.Name(""), "short token": admin.Token("x"), "nil function": admin.Authorize(nil), "host": admin.AllowHosts("http://x"),
		"nil TLS": admin.TLS(nil), "nil handler": admin.Handle("metrics", nil), "taken path": admin.Handle("methods", http.NotFoundHandler()),
		"nil logger": admin.Logger(nil), "recorder": admin.FlightRecorder(0, time.Second), "nil": nil,
	} {
		if _, err := admin.New(telemetry.New(), opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := admin.New(nil); err == nil {
		t.Error("a nil meter: no error")
	}
}

// A page works below another path, and with handlers of others.
func TestMounted(t *testing.T) {
	s := newSite(t, admin.Handle("metrics", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "up 1\n") })))
	mux := http.NewServeMux()
	mux.Handle("/admin/", http.StripPrefix("/admin", s.page))
	h := httptest.NewServer(mux)
	defer h.Close()
	for path, want := range map[string]string{"/admin": "OVERVIEW", "/admin/options": "MaxConns", "/admin/metrics": "up 1"} {
		answer, err := http.Get(h.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if !strings.Contains(strings.ToUpper(string(text)), strings.ToUpper(want)) {
			t.Errorf("%s: %s", path, text)
		}
	}
}

package change_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/change"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// Echo is the message of the test service.
type Echo struct{ Text, User string }

// site is a console with a service that has two versions.
type site struct {
	*httptest.Server
	t        *testing.T
	registry *registry.Memory
	changes  *change.Changes
	log      string
	open     atomic.Int64 // streams
	loads    atomic.Int64 // documents that were read
	busy     atomic.Bool  // others write all the time

	mu      sync.Mutex // guards the fields below
	figures []change.Figures
	notes   []string
}

// counted counts the documents that are read.
type counted struct {
	registry.Store
	site *site
}

func (c *counted) Load(ctx context.Context, name string) (registry.Document, error) {
	c.site.loads.Add(1)
	return c.Store.Load(ctx, name)
}

func (c *counted) Save(ctx context.Context, doc registry.Document) (uint64, error) {
	if c.site.busy.Load() {
		return 0, registry.ErrConflict
	}
	return c.Store.Save(ctx, doc)
}

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// serve starts an instance of the service arith.
func serve(t *testing.T, reg registry.Registrar, id, version string) {
	t.Helper()
	s := anser.NewServer(silent, anser.Announce(reg, registry.Instance{Service: "arith", ID: id, Version: version}), anser.NoSignals())
	answer := func(ctx context.Context, q *Echo) (*Echo, error) {
		if q.Text == "fail" {
			return nil, anser.Errorf(anser.NotFound, "there is no such text")
		}
		return &Echo{id + " " + q.Text, anser.MetadataFrom(ctx)["console-user"]}, nil
	}
	if err := anser.Handle(s, "Arith.Echo", answer); err != nil {
		t.Fatal(err)
	}
	err := anser.HandleStream(s, "Arith.Talk", func(_ context.Context, st *anser.Stream[Echo, Echo]) error {
		for m, err := range st.All() {
			if err != nil {
				return err
			}
			if err := st.Send(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listen(t, s)
}

// listen makes the server of an instance serve until the test ends.
func listen(t *testing.T, s *anser.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
}

// start starts a console with a registry and the options of its access.
func start(t *testing.T, reg *registry.Memory, o access.Options) *site {
	t.Helper()
	a, err := access.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, registry: reg, log: filepath.Join(t.TempDir(), "audit.jsonl")}
	log, err := audit.Open(s.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s.changes, err = change.New(change.Deps{
		Access: a, Log: log, Registry: reg, Store: &counted{reg, s},
		Dial: func(target string, opts ...anser.DialOption) (*anser.Client, error) {
			opts = append(opts, silent, anser.NoSnapshot(), registry.Scheme{Name: "mem", Open: func(*url.URL) (registry.Resolver, string, error) {
				return reg.Join(), target, nil
			}})
			if strings.Contains(target, ":") {
				return anser.Dial(target, opts...)
			}
			return anser.Dial("mem://"+target, append(opts, route.Rules())...)
		},
		Figures: func(string) []change.Figures {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.figures
		},
		Note: func(kind, service, instance, text, by string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.notes = append(s.notes, strings.Join([]string{kind, service, instance, text, by}, "|"))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, routes := range []map[string]http.Handler{a.Routes(), s.changes.Routes()} {
		for pattern, h := range routes {
			mux.Handle(pattern, h)
		}
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/stream") {
			s.open.Add(1)
			defer s.open.Add(-1)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// system starts a console without a login for a service with an instance of each of two versions.
func system(t *testing.T) *site {
	t.Helper()
	reg := registry.NewMemory()
	serve(t, reg, "one", "1.0")
	serve(t, reg, "two", "2.0")
	awaitInstances(t, reg, 2)
	return start(t, reg, access.Options{})
}

func awaitInstances(t *testing.T, reg *registry.Memory, n int) {
	t.Helper()
	eventually(t, "the instances", func() bool {
		list, err := registry.List(t.Context(), reg, "arith")
		return err == nil && len(list) == n
	})
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// viewer is a browser.
type viewer struct {
	*http.Client
	t    *testing.T
	site *site
	csrf string
}

// viewer returns a browser that has logged in as a user, unless the name is empty.
func (s *site) viewer(user string) *viewer {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	v := &viewer{&http.Client{Jar: jar, Transport: &http.Transport{}}, s.t, s, ""}
	s.t.Cleanup(v.CloseIdleConnections)
	if user != "" {
		v.expect(204, "POST", "/api/login", `{"user":"`+user+`","password":"`+accesstest.Password+`"}`, nil)
	}
	var session struct{ CSRF string }
	v.expect(200, "GET", "/api/session", "", &session)
	v.csrf = session.CSRF
	return v
}

func (v *viewer) send(method, path, body string) (int, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.site.URL+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	return v.sendAs("application/json", r)
}

// sendAs sends a request whose body has the type.
func (v *viewer) sendAs(contentType string, r *http.Request) (int, string) {
	v.t.Helper()
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-CSRF-Token", v.csrf)
	answer, err := v.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}

// expect fails unless a request gets the status, and decodes the answer into out unless it is nil.
func (v *viewer) expect(status int, method, path, body string, out any) string {
	v.t.Helper()
	got, text := v.send(method, path, body)
	if got != status {
		v.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, got, text, status)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			v.t.Fatalf("%s: %v", text, err)
		}
	}
	return text
}

func TestInstances(t *testing.T) {
	s := system(t)
	v := s.viewer("")
	v.expect(404, "POST", "/api/instances", `{"service":"arith","instance":"three","state":"disabled"}`, nil)
	v.expect(400, "POST", "/api/instances", `{"service":"arith","instance":"one","state":"away"}`, nil)
	v.expect(400, "POST", "/api/instances", `{"service":"arith","instance":"one"}`, nil)
	v.expect(400, "POST", "/api/instances", `{"service":"arith","instance":"one","weight":-1}`, nil)
	v.expect(400, "POST", "/api/instances", `{"service":"arith","instance":"one","wait":1}`, nil)
	v.expect(200, "POST", "/api/instances", `{"service":"arith","instance":"one","state":"disabled","weight":7,"tags":{"env":"gray"},"reason":"a test"}`, nil)
	d, err := route.Load(t.Context(), s.registry, "arith")
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Rules.Adjust(registry.Instance{ID: "one"}); got.State != registry.Disabled || got.Weight != 7 || got.Tags["env"] != "gray" {
		t.Errorf("the instance is %+v", got)
	}
	if d.Author != "this machine" || !strings.Contains(d.Comment, "one: disabled, weight 7, tag env=gray: a test") {
		t.Errorf("by %q: %q", d.Author, d.Comment)
	}
	var answer struct{ Reply Echo }
	for range 5 {
		v.expect(200, "POST", "/api/call", `{"service":"arith","method":"Arith.Echo","request":{"Text":"x"}}`, &answer)
		if answer.Reply.Text != "two x" {
			t.Errorf("a disabled instance got a call: %q", answer.Reply.Text)
		}
	}
	v.expect(200, "POST", "/api/instances", `{"service":"arith","instance":"one","state":"up","weight":0,"tags":{"env":""}}`, nil)
	if d, err = route.Load(t.Context(), s.registry, "arith"); err != nil || len(d.Rules.Instances) != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	var list []audit.Entry
	v.expect(200, "GET", "/api/audit", "", &list)
	if e := list[len(list)-1]; e.Action != "instance" || e.Subject != "one" || e.Outcome != audit.Begun || e.Reason != "a test" || e.Remote == "" {
		t.Errorf("the first entry is %+v", e)
	}
	if sum, err := audit.Verify(s.log, ""); err != nil || int(sum.Entries) != len(list) {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestUnrecordedChangesAreNotMade(t *testing.T) {
	s := system(t)
	v := s.viewer("")
	other, err := os.OpenFile(s.log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.WriteString("a line of another program\n"); err != nil { // makes the log unusable
		t.Fatal(err)
	}
	for _, q := range []struct{ method, path, body string }{
		{"POST", "/api/instances", `{"service":"arith","instance":"one","state":"disabled"}`},
		{"PUT", "/api/rules/arith", `{"text":"rules: {}"}`},
		{"POST", "/api/canary", `{"service":"arith","version":"2.0","share":10,"bounds":{"errors":0.1}}`},
		{"POST", "/api/faultinjection", `{"service":"arith","share":10,"code":"internal","until":"` + soon() + `"}`},
		{"POST", "/api/call", `{"service":"arith","method":"Arith.Echo"}`},
		{"POST", "/api/call/stream", `{"service":"arith","method":"Arith.Talk"}`},
	} {
		v.expect(503, q.method, q.path, q.body, nil)
	}
	if d, err := route.Load(t.Context(), s.registry, "arith"); err != nil || d.Version != 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

func soon() string { return time.Now().Add(time.Hour).UTC().Format(time.RFC3339) }

func TestRules(t *testing.T) {
	s := system(t)
	v := s.viewer("")
	var rules struct {
		Version uint64
		Text    string
	}
	v.expect(200, "GET", "/api/rules/arith", "", &rules)
	var checked struct {
		OK     bool
		Errors []struct {
			Line, Column  int
			Path, Message string
		}
		Effects []route.RuleEffect
	}
	bad, _ := json.Marshal(map[string]string{"text": "rules:\n  split:\n  - percent: 101\n    to: {version: \"2.0\"}\n"})
	v.expect(200, "POST", "/api/rules/arith/check", string(bad), &checked)
	if checked.OK || len(checked.Errors) == 0 || checked.Errors[0].Line != 3 || checked.Errors[0].Column != 14 {
		t.Errorf("the mistakes are %+v", checked.Errors)
	}
	v.expect(400, "PUT", "/api/rules/arith", string(bad), nil)
	good := func(version uint64, percent int) string {
		text, _ := json.Marshal(map[string]any{"text": "rules:\n  split:\n  - percent: " + string(rune('0'+percent)) + "\n    to: {version: \"2.0\"}\n", "version": version, "reason": "a test"})
		return string(text)
	}
	v.expect(200, "POST", "/api/rules/arith/check", good(0, 5), &checked)
	if !checked.OK || len(checked.Effects) != 1 || len(checked.Effects[0].Instances) != 1 {
		t.Errorf("the check says %+v", checked)
	}
	// Two consoles: the second one learns of the change of the first one.
	v.expect(200, "PUT", "/api/rules/arith", good(0, 5), &rules)
	if rules.Version != 1 || !strings.Contains(rules.Text, "percent: 5") {
		t.Errorf("the rules are %+v", rules)
	}
	second := start(t, s.registry, access.Options{}).viewer("")
	var conflict struct {
		Error   string
		Advice  string
		Current struct {
			Version uint64
			Text    string
		}
	}
	second.expect(409, "PUT", "/api/rules/arith", good(0, 6), &conflict)
	if conflict.Current.Version != 1 || !strings.Contains(conflict.Current.Text, "percent: 5") || !strings.Contains(conflict.Error, "a test") {
		t.Errorf("the conflict is %+v", conflict)
	}
	if want := "the rules stay as they are: compare your change with the other one, and send it with version 1"; conflict.Advice != want {
		t.Errorf("the advice is %q, want %q", conflict.Advice, want)
	}
	second.expect(200, "PUT", "/api/rules/arith", good(1, 6), nil)
	v.expect(200, "POST", "/api/rules/arith/restore", `{"version":1,"reason":"back"}`, &rules)
	if rules.Version != 3 || !strings.Contains(rules.Text, "percent: 5") {
		t.Errorf("after the restoration %+v", rules)
	}
	v.expect(400, "POST", "/api/rules/arith/restore", `{"version":9}`, nil)
	v.expect(409, "POST", "/api/rules/arith/restore", `{"version":2,"on":1}`, nil)
	var history []struct {
		Version         uint64
		Author, Comment string
	}
	v.expect(200, "GET", "/api/rules/arith/history", "", &history)
	if len(history) != 3 || history[0].Comment != "back to version 1: back" || history[2].Author != "this machine" {
		t.Errorf("the history is %+v", history)
	}
	v.expect(200, "POST", "/api/rules/arith/restore", `{"version":0,"on":3}`, &rules)
	if rules.Version != 4 || strings.Contains(rules.Text, "percent") {
		t.Errorf("without rules %+v", rules)
	}
}

// The page has the schema of the rules that this console reads.
func TestRuleSchema(t *testing.T) {
	want, err := route.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var got json.RawMessage
	system(t).viewer("").expect(200, "GET", "/api/ruleschema", "", &got)
	var a, b any
	if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("the schema is %s", got)
	}
}

func TestFaults(t *testing.T) {
	s := system(t)
	v := s.viewer("")
	for _, bad := range []string{
		`{"service":"arith","share":10,"code":"internal"}`,
		`{"service":"arith","share":10,"code":"internal","until":"2020-01-01T00:00:00Z"}`,
		`{"service":"arith","share":10,"code":"internal","until":"2200-01-01T00:00:00Z"}`,
		`{"service":"arith","share":0,"code":"internal","until":"` + soon() + `"}`,
		`{"service":"arith","share":10,"until":"` + soon() + `"}`,
		`{"service":"arith","share":10,"code":"oops","until":"` + soon() + `"}`,
	} {
		v.expect(400, "POST", "/api/faultinjection", bad, nil)
	}
	v.expect(200, "POST", "/api/faultinjection", `{"service":"arith","method":"Arith.Echo","share":100,"code":"data loss","until":"`+soon()+`","reason":"a test"}`, nil)
	var list []struct {
		Method, Code string
		Share        float64
		Until        time.Time
	}
	v.expect(200, "GET", "/api/faultinjection?service=arith", "", &list)
	if len(list) != 1 || list[0].Method != "Arith.Echo" || list[0].Share != 100 || !strings.EqualFold(list[0].Code, "data loss") || list[0].Until.IsZero() {
		t.Errorf("the faults are %+v", list)
	}
	var answer struct {
		Error   *struct{ Code, Message string }
		Outcome string
	}
	v.expect(200, "POST", "/api/call", `{"service":"arith","method":"Arith.Echo"}`, &answer)
	if answer.Error == nil || answer.Error.Message != "a fault of an operator" {
		t.Errorf("the call got %+v", answer)
	}
	v.expect(404, "DELETE", "/api/faultinjection?service=arith&method=Arith.Mul", "", nil)
	v.expect(200, "DELETE", "/api/faultinjection?service=arith&method=Arith.Echo", "", nil)
	v.expect(200, "GET", "/api/faultinjection?service=arith", "", &list)
	if len(list) != 0 {
		t.Errorf("the faults are %+v", list)
	}
}

// options returns the options of a console without a login.
func (s *site) options() access.Options { return access.Options{} }

// newSite returns a console without a server, for a bubble.
func newSite(t *testing.T, reg *registry.Memory) *site {
	t.Helper()
	s := start(t, reg, access.Options{})
	s.Server.Close()
	return s
}

// post makes a request without a connection.
func (s *site) post(path, body string) (int, string) {
	h := s.Config.Handler
	send := func(r *http.Request) *httptest.ResponseRecorder {
		r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	var session struct{ CSRF string }
	if err := json.Unmarshal(send(httptest.NewRequestWithContext(s.t.Context(), "GET", "/api/session", nil)).Body.Bytes(), &session); err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(s.t.Context(), "POST", path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-CSRF-Token", session.CSRF)
	w := send(r)
	return w.Code, w.Body.String()
}

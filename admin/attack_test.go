package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/telemetry"
)

// stuck is a viewer that does not read: a write waits until the test ends it.
type stuck struct {
	*httptest.ResponseRecorder
	began chan struct{}
	end   <-chan struct{}
}

func (s *stuck) Write([]byte) (int, error) {
	select {
	case s.began <- struct{}{}:
	default:
	}
	<-s.end
	return 0, os.ErrDeadlineExceeded
}

func (s *stuck) SetWriteDeadline(time.Time) error { return nil }

func (s *stuck) FlushError() error { return nil }

// local returns a request of this machine.
func local(t *testing.T, path string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
	return r
}

// Calls do not wait for a viewer that does not read, no record is made of what it has no room for,
// and its place is free when its connection has failed.
func TestViewerThatDoesNotRead(t *testing.T) {
	meter := telemetry.New()
	page, err := admin.New(meter)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	end, began := make(chan struct{}), make(chan struct{}, 1)
	var viewers sync.WaitGroup
	viewers.Go(func() {
		page.ServeHTTP(&stuck{httptest.NewRecorder(), began, end}, local(t, "/calls.ndjson?rate=10000"))
	})
	o, info := meter.Observer(), &anser.CallInfo{Server: true, Method: "A.B", Duration: time.Millisecond}
	call := func() { o.CallEnded(context.Background(), info) }
	for stands := false; !stands; { // until the viewer has a call to write
		call()
		select {
		case <-began:
			stands = true
		default:
		}
	}
	for range 100_000 {
		call()
	}
	if got := testing.AllocsPerRun(1000, call); got >= 1 {
		t.Errorf("a call for a viewer without room allocates %v times", got)
	}
	close(end)
	viewers.Wait()
	var taps []*telemetry.Tap
	for range 16 {
		tap, err := meter.Tap(telemetry.Filter{}, 1)
		if err != nil {
			t.Fatalf("the viewer has kept its place: %v", err)
		}
		taps = append(taps, tap)
	}
	for _, tap := range taps {
		meter.Untap(tap)
	}
}

// Of thousands of viewers at once 16 get calls, the others are refused at once, and afterwards
// there is room again.
func TestThousandsOfViewers(t *testing.T) {
	meter := telemetry.New()
	page, err := admin.New(meter)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	ctx, cancel := context.WithCancel(t.Context())
	const many = 3000
	results := make(chan int, many)
	ready := make(chan struct{}, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			w := &answered{ResponseRecorder: httptest.NewRecorder(), ready: ready}
			page.ServeHTTP(w, local(t, fmt.Sprintf("/calls.events?method=A.B%d", i)).WithContext(ctx))
			results <- w.Code
		})
	}
	for range many - 16 { // the others are refused, whatever 16 viewers do
		if code := <-results; code != http.StatusServiceUnavailable {
			t.Errorf("a viewer too many got %d", code)
		}
	}
	for range 16 {
		<-ready
	}
	cancel()
	wg.Wait()
	for range 16 {
		if code := <-results; code != http.StatusOK {
			t.Errorf("a viewer got %d", code)
		}
	}
	w := httptest.NewRecorder()
	if page.ServeHTTP(w, local(t, "/calls.ndjson?for=1ms")); w.Code != http.StatusOK {
		t.Errorf("after the others: %d %s", w.Code, w.Body)
	}
}

// answered says when the header of an answer that is not an error was flushed.
type answered struct {
	*httptest.ResponseRecorder
	ready chan<- struct{}
	once  sync.Once
}

func (a *answered) SetWriteDeadline(time.Time) error { return nil }

func (a *answered) FlushError() error {
	a.once.Do(func() { a.ready <- struct{}{} })
	a.ResponseRecorder.Flush()
	return nil
}

// Nothing that a page of another site can send does anything, whatever the page of the admin is
// for: no request without the fields of a browser that says that it is of this site.
func TestRequestsOfOtherSites(t *testing.T) {
	s := newSite(t, admin.FlightRecorder(time.Hour, time.Minute))
	paths := []string{
		"/", "/all.json", "/calls.ndjson", "/calls.events", "/debug/pprof/profile?seconds=0.01", "/debug/pprof/trace?seconds=0.01",
		"/debug/pprof/heap", "/flight/now.trace", "/methods.json", "/trace.json?id=" + strings.Repeat("a", 32),
	}
	for _, path := range paths {
		for name, header := range map[string][]string{
			"form or fetch":      {"Origin", "https://evil.example"},
			"sandboxed frame":    {"Origin", "null"},
			"another port":       {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"},
			"image":              {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "image"},
			"frame":              {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "iframe", "Accept", "text/html"},
			"script":             {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "script"},
			"a name points here": {"Host", "rebound.evil.example:8971", "Sec-Fetch-Site", "same-origin"},
			"no name":            {"Host", "."},
		} {
			if status, body, h := s.get(t, path, header...); status != http.StatusForbidden || h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s by %s: %d %.100s", path, name, status, body)
			}
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch} {
		for _, path := range paths {
			r := local(t, path)
			r.Method = method
			w := httptest.NewRecorder()
			if s.page.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
}

// Parameters that are huge, not numbers, or lead elsewhere are refused, and answers do not repeat
// more of them than a line.
func TestHostileParameters(t *testing.T) {
	s := newSite(t, admin.FlightRecorder(time.Hour, time.Minute))
	long := strings.Repeat("%F0%9F%98%80A", 1500)
	for _, path := range []string{
		"/calls.ndjson?n=-1", "/calls.ndjson?n=99999999999999999999", "/calls.ndjson?rate=-1", "/calls.ndjson?rate=1e9", "/calls.ndjson?for=999999h",
		"/calls.ndjson?slower=" + long, "/calls.ndjson?side=" + long, "/calls.ndjson?failed=" + long, "/calls.ndjson?sampled=" + long, "/calls.ndjson?rate=" + long,
		"/calls.ndjson?for=" + long, "/calls.ndjson?n=" + long, "/calls.ndjson?trace=" + long, "/calls.ndjson?method=" + long, "/calls." + long,
		"/methods.json?conns=-1", "/streams.json?streams=-1", "/connections.json?conns=99999999999999999999", "/connections.json?conns=" + long, "/methods." + long,
		"/debug/pprof/profile?seconds=1e9", "/debug/pprof/profile?seconds=-1", "/debug/pprof/trace?seconds=Inf", "/debug/pprof/trace?seconds=NaN", "/debug/pprof/profile?seconds=" + long,
		"/debug/pprof/..%2f..%2fetc%2fpasswd", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/" + long, "/debug/vars",
		"/flight/..%2f..%2fetc%2fpasswd", "/flight/..%2fnow.trace", "/flight/-1.trace", "/flight/0.trace", "/flight/1e9.trace", "/flight/" + long + ".trace", "/trace?id=..%2f", "/trace?id=" + long, "/" + long,
	} {
		status, body, _ := s.get(t, path)
		if status != http.StatusBadRequest && status != http.StatusNotFound {
			t.Errorf("%.60s: %d", path, status)
		}
		if len(body) > 1000 {
			t.Errorf("%.60s: the answer has %d bytes", path, len(body))
		}
	}
	status, body, _ := s.get(t, "/method?side="+long+"&name="+long)
	if status != http.StatusOK && status != http.StatusNotFound && status != http.StatusBadRequest || len(body) > 64<<10 {
		t.Errorf("a method with a long name: %d, %d bytes", status, len(body))
	}
}

const hunter = "hunter2secret"

// No form of the page has a secret that was given to an option, or that is in a URL within a text.
func TestSecretsAreNotShown(t *testing.T) {
	meter := telemetry.New(telemetry.Messages())
	page, err := admin.New(meter, admin.Token(hunter+" of the page"))
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	h := httptest.NewServer(page)
	defer h.Close()
	defer http.DefaultClient.CloseIdleConnections()
	reg := registry.NewMemory()
	address := "redis://user:" + hunter + "@10.0.0.9:1/x"
	in := registry.Instance{Service: "arith", Address: "127.0.0.1:1", Tags: map[string]string{"admin": address}}
	s := anser.NewServer(meter.Option(), anser.NoSignals(), anser.Announce(reg, in))
	defer s.Close()
	c, err := anser.Dial("127.0.0.1:1", meter.Option(), anser.Credentials(func(context.Context) (anser.Credential, error) {
		return anser.Credential{Scheme: "bearer", Data: []byte(hunter)}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	failed := &anser.Error{Code: anser.Unavailable, Message: "dial " + address, Attempts: []anser.AttemptInfo{{Code: anser.Unavailable, Message: "dial " + address, Address: address}}}
	o := meter.Observer()
	for _, err := range []error{failed, errors.New(failed.Message)} {
		o.CallEnded(context.Background(), &anser.CallInfo{Method: "A.B", Target: address, Address: address, Duration: time.Second, Err: err})
	}
	o.CallEnded(context.Background(), &anser.CallInfo{Method: "A.B", Target: address, Duration: time.Hour, Attempts: failed.Attempts})
	if err := reg.Register(t.Context(), registry.Instance{Service: "shop", ID: "a", Address: "ws://" + hunter + "@10.0.0.9:1/x"}); err != nil {
		t.Fatal(err)
	}
	found := registry.Scheme{Name: "test", Open: func(*url.URL) (registry.Resolver, string, error) { return reg, "shop", nil }}
	shop, err := anser.Dial("test://h:1/shop", found, meter.Option())
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	at := &site{Server: h, meter: meter, page: page, client: c}
	for _, path := range append(pages, "/all.json", "/figures.json", "/method?side=client&name=A.B") {
		for _, accept := range []string{"text/html", "text/plain", "application/json"} {
			if _, body, _ := at.get(t, path, "Accept", accept, "Authorization", "Bearer "+hunter+" of the page"); strings.Contains(body, hunter) {
				i := strings.Index(body, hunter)
				t.Errorf("%s as %s has a secret: %q", path, accept, body[max(i-60, 0):min(i+40, len(body))])
			}
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/calls.ndjson?n=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+hunter+" of the page")
	answer, err := http.DefaultClient.Do(r) // the tap is there when the header has arrived
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	o.CallEnded(context.Background(), &anser.CallInfo{Method: "A.B", Target: address, Address: address, Duration: time.Second, Err: failed})
	line, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(line), `"A.B"`) || strings.Contains(string(line), hunter) {
		t.Errorf("a live call is %s, %v", line, err)
	}
}

package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// Names that others choose are text on the page, and do not control a terminal.
func TestHostileNames(t *testing.T) {
	s := newSite(t)
	const evil = "A.<script>alert(1)</script>\x1b]0;title\x07\u202e\n"
	s.meter.Observer().CallEnded(context.Background(), &anser.CallInfo{
		Server: true, Method: evil, Duration: time.Second, Err: errors.New(evil),
	})
	s.meter.Observer().CallEnded(context.Background(), &anser.CallInfo{
		Target: "redis://user:hunter2@127.0.0.1:1,127.0.0.1:2/x", Method: evil, Duration: time.Second, Err: errors.New(evil), Address: evil,
	})
	for _, path := range pages {
		for _, accept := range []string{"text/html", "text/plain", "application/json"} {
			_, body, _ := s.get(t, path, "Accept", accept)
			if accept == "text/html" && strings.Contains(body, "<script>alert") {
				t.Errorf("%s has a script", path)
			}
			if strings.ContainsAny(body, "\x1b\x07") || accept != "application/json" && strings.Contains(body, "\u202e") {
				t.Errorf("%s as %s controls the terminal", path, accept)
			}
			if strings.Contains(body, "hunter2") {
				t.Errorf("%s as %s has a password", path, accept)
			}
		}
	}
}

// A page that a viewer polls makes few snapshots, however many viewers there are.
func TestViewersShareSamples(t *testing.T) {
	s := newSite(t)
	s.document(t, "/methods.json")
	s.call(t)
	first := s.document(t, "/methods.json")
	for range 20 {
		if again := s.document(t, "/methods.json"); !again.Time.Equal(first.Time) && again.Time.Sub(first.Time) < 150*time.Millisecond {
			t.Errorf("two samples within %v", again.Time.Sub(first.Time))
		}
	}
	if m := methodIn(&first, "server", "Arith.Mul"); m.Codes[0].Times.Scale != telemetry.Scale {
		t.Errorf("scale %d", m.Codes[0].Times.Scale)
	}
}

// A page that another site opens in a new window can neither start a profile nor hold a tap,
// wherever the admin page is mounted.
func TestLinksOfOtherSites(t *testing.T) {
	s := newSite(t, admin.Handle("metrics", http.NotFoundHandler()))
	for _, prefix := range []string{"/admin", "/admin/"} {
		h := http.StripPrefix(prefix, s.page)
		for path, want := range map[string]int{
			"/admin/options": http.StatusOK, "/admin/calls": http.StatusOK, "/admin/debug/pprof/profile": http.StatusForbidden,
			"/admin/calls.ndjson": http.StatusForbidden, "/admin/flight/now.trace": http.StatusForbidden, "/admin/metrics": http.StatusForbidden,
		} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
			for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document", "Accept": "text/html"} {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s below %s: %d, want %d", path, prefix, w.Code, want)
			}
		}
	}
}

// A page that says null for a call is read without it.
func TestNullCalls(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"format":1,"slow":{"calls":[null]},"failures":{"calls":[null,{"method":"A.B"}]}}`)
	}))
	defer h.Close()
	defer http.DefaultClient.CloseIdleConnections()
	d, err := new(admin.Reader).Document(context.Background(), h.URL, "all")
	if err != nil || len(d.Slow.Calls) != 0 || len(d.Failures.Calls) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

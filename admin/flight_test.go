package admin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// A call that is slower than the bound is saved with what the process did before, and further ones
// are counted.
func TestFlightRecorder(t *testing.T) {
	s := newSite(t, admin.FlightRecorder(2*time.Millisecond, time.Minute))
	deadline := time.Now().Add(time.Minute)
	list := ""
	for !strings.Contains(list, "flight/1.trace") && time.Now().Before(deadline) {
		_, list, _ = s.get(t, "/flight/")
		time.Sleep(10 * time.Millisecond)
	}
	// On a busy machine, another call may have been slow before Arith.Slow.
	if !strings.Contains(list, " took ") || strings.Contains(list, "flight/2.trace") {
		t.Errorf("the list is\n%s", list)
	}
	for _, name := range []string{"1.trace", "now.trace"} {
		if status, body, h := s.get(t, "/flight/"+name); status != http.StatusOK || !strings.HasPrefix(body, "go 1.") || !strings.Contains(h.Get("Content-Disposition"), name) {
			t.Errorf("%s: %d %v %.20q", name, status, h, body)
		}
	}
	for _, name := range []string{"2.trace", "x.trace", "1"} {
		if status, _, _ := s.get(t, "/flight/"+name); status != http.StatusNotFound {
			t.Errorf("%s: %d", name, status)
		}
	}
	if _, err := admin.New(telemetry.New(), admin.FlightRecorder(time.Second, time.Second)); err == nil || !strings.Contains(err.Error(), "FlightRecorder") {
		t.Errorf("a second recorder: %v", err)
	}
}

func TestProfiles(t *testing.T) {
	s := newSite(t)
	for path, want := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof": "goroutine", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/goroutine": "\x1f\x8b",
		"/debug/pprof/profile?seconds=0.01": "\x1f\x8b", "/debug/pprof/trace?seconds=0.01": "go 1.",
	} {
		if status, body, _ := s.get(t, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.40q", path, status, body)
		}
	}
	for _, path := range []string{"/debug/pprof/profile?seconds=x", "/debug/pprof/trace?seconds=-1", "/debug/pprof/profile?seconds=1e9"} {
		if status, _, _ := s.get(t, path); status != http.StatusBadRequest {
			t.Errorf("%s: %d", path, status)
		}
	}
}

package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// Names that others choose are text on the page, and do not control a terminal.
func TestHostileNames(t *testing.T) {
	s := newSite(t)
	const evil = "A.<script>alert(1)</script>\x1b]0;title\x07\u202e\n"
	s.meter.Observer().CallEnded(context.Background(), anser.CallInfo{
		Server: true, Method: evil, Duration: time.Second, Err: errors.New(evil),
	})
	s.meter.Observer().CallEnded(context.Background(), anser.CallInfo{
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

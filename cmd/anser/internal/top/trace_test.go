package top_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/top"
	"github.com/anser-rpc/anser/telemetry"
)

const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"

// remembers serves the page of a process that remembers calls of a trace.
func remembers(t *testing.T, name string, calls ...*telemetry.Call) top.Source {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := admin.Document{Format: admin.Format, Process: admin.Process{ID: name, Name: name}}
		if r.URL.Query().Get("id") == traceID {
			d.Trace = &admin.Calls{Calls: calls}
		}
		json.NewEncoder(w).Encode(&d)
	}))
	t.Cleanup(s.Close)
	return top.Source{Address: s.URL, Instance: name}
}

// call returns a call that began at a time, in milliseconds, and took others.
func call(side, method, span, parent string, began, took int) *telemetry.Call {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(began+took) * time.Millisecond)
	return &telemetry.Call{Time: at, Side: side, Method: method, TraceID: traceID, SpanID: span, ParentID: parent, Duration: time.Duration(took) * time.Millisecond}
}

// outline is a trace without what does not matter here.
func outline(t *top.Trace) string {
	var b strings.Builder
	for _, c := range t.Calls {
		fmt.Fprintf(&b, "%s%s %s %s +%v\n", strings.Repeat("  ", c.Depth), c.Side, c.Method, c.Process, c.Start)
	}
	return b.String()
}

// The calls of a trace are below their callers, whatever process remembers them, and in the time of
// their callers if a clock is off.
func TestReadTrace(t *testing.T) {
	failed := call("client", "Arith.Add", "c", "b", 2, 4)
	failed.Code, failed.Attempts = anser.Unavailable, []anser.AttemptInfo{{Address: "10.0.0.1:1", Code: anser.Unavailable, Duration: time.Millisecond}}
	sources := []top.Source{
		remembers(t, "front-1", failed, call("server", "Front.Page", "b", "a", 1, 8), call("client", "Posts.Query", "e", "b", 7, 1)),
		remembers(t, "demo", call("client", "Front.Page", "a", "0", 0, 10)),
		remembers(t, "arith-1", call("server", "Arith.Add", "d", "c", 3_600_000, 2)), // an hour ahead
		remembers(t, "posts-1", call("server", "Posts.Query", "f", "lost", 8, 1)),
		{Address: "127.0.0.1:1"},
	}
	defer http.DefaultClient.CloseIdleConnections()
	got, err := top.ReadTrace(t.Context(), new(admin.Reader), sources, time.Minute, traceID)
	if err != nil {
		t.Fatal(err)
	}
	const want = `client Front.Page demo +0s
  server Front.Page front-1 +1ms
    client Arith.Add front-1 +2ms
      server Arith.Add arith-1 +3ms
    client Posts.Query front-1 +7ms
server Posts.Query posts-1 +8ms
`
	if outline(got) != want || got.Duration != 10*time.Millisecond || len(got.Silent) != 1 {
		t.Errorf("%v, %q\n%s\nwant\n%s", got.Duration, got.Silent, outline(got), want)
	}
	text := strings.Join(got.Lines(0), "\n")
	for _, part := range []string{"6 calls in 4 processes  10.0 ms", "1 failed", "      server Arith.Add", "      attempt 1", "10.0.0.1:1", "unavailable", "does not answer"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	for _, line := range got.Lines(60) {
		if n := len([]rune(line)); n > 60 && !strings.Contains(line, "does not answer") && !strings.Contains(line, "\x1b") {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// Calls that claim to be below each other or themselves are shown once each.
func TestTraceThatIsACircle(t *testing.T) {
	s := remembers(t, "liar", call("server", "A.A", "a", "b", 0, 5), call("server", "A.B", "b", "a", 1, 3), call("server", "A.C", "c", "c", 2, 1), call("server", "A.D\x1b[2J", "a", "", 3, 1))
	defer http.DefaultClient.CloseIdleConnections()
	got, err := top.ReadTrace(t.Context(), new(admin.Reader), []top.Source{s}, time.Minute, traceID)
	if err != nil || len(got.Calls) != 4 {
		t.Fatal(got, err)
	}
	if text := strings.Join(got.Lines(80), "\n"); strings.Contains(text, "\x1b[2J") {
		t.Errorf("%q", text)
	}
}

func TestTraceThatIsForgotten(t *testing.T) {
	s := remembers(t, "x")
	defer http.DefaultClient.CloseIdleConnections()
	if _, err := top.ReadTrace(context.Background(), new(admin.Reader), []top.Source{s}, time.Minute, traceID); !errors.Is(err, top.ErrNoTrace) {
		t.Error(err)
	}
}

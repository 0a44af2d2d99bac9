package admin_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// The page of a trace has its calls, in all forms, and other pages have links to it.
func TestTracePage(t *testing.T) {
	s := newSite(t)
	const id = "000000000000000000000000000000ff"
	s.meter.Observer().CallEnded(context.Background(), &anser.CallInfo{
		Server: true, Method: "Shop.Buy", Duration: 40 * time.Millisecond, Handle: 39 * time.Millisecond,
		Trace: anser.Trace{TraceID: [16]byte{15: 0xff}, SpanID: [8]byte{1}, Flags: 1},
	})
	d := s.document(t, "/trace.json?id="+id)
	if d.Trace == nil || len(d.Trace.Calls) != 1 || d.Trace.Calls[0].SpanID != "0100000000000000" || d.Failures != nil {
		t.Errorf("%+v", d.Trace)
	}
	for path, want := range map[string]string{"/trace.txt?id=" + id: "Shop.Buy", "/trace.html?id=" + id: "Shop.Buy", "/slow.html": `href="trace?id=` + id + `"`, "/trace.txt?id=" + strings.Repeat("0", 32): "remembers no call"} {
		if status, body, _ := s.get(t, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, bad := range []string{"", "x", id + "0", strings.ToUpper(id)} {
		if status, body, _ := s.get(t, "/trace?id="+bad); status != http.StatusBadRequest || !strings.Contains(body, "32 digits") {
			t.Errorf("%q: %d %s", bad, status, body)
		}
	}
}

// What a viewer makes the process record is bounded: by the rate, the room for calls that it has
// not read, the length of what it asks for, and the number of viewers.
func TestViewersAreBounded(t *testing.T) {
	s := newSite(t)
	for _, query := range []string{"method=" + strings.Repeat("x", 2000), "trace=x", "trace=" + strings.Repeat("z", 32)} {
		if status, body, _ := s.get(t, "/calls.ndjson?"+query); status != http.StatusBadRequest || !strings.Contains(body, "want") || len(body) > 200 {
			t.Errorf("%.40s: %d %s", query, status, body)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 16 { // viewers that read nothing
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/calls.ndjson?rate=10000", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
	}
	if status, body, _ := s.get(t, "/calls.ndjson"); status != http.StatusServiceUnavailable || !strings.Contains(body, "16") {
		t.Errorf("the 17th viewer: %d %s", status, body)
	}
	// What is left out is counted.
	cancel()
	calls, skipped := 0, uint64(0)
	observer := s.meter.Observer()
	follow, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		for follow.Err() == nil {
			observer.CallEnded(follow, &anser.CallInfo{Server: true, Method: "Shop.Buy", Duration: time.Millisecond})
			time.Sleep(time.Millisecond)
		}
	}()
	for calls == 0 { // until one of the 16 has left
		err := new(admin.Reader).Follow(follow, s.URL, url.Values{"rate": {"1"}, "n": {"3"}}, func(_ *telemetry.Call, n uint64) { calls, skipped = calls+1, n })
		if err != nil && !strings.Contains(err.Error(), "16") {
			t.Fatal(err)
		}
	}
	if calls != 3 || skipped == 0 {
		t.Errorf("%d calls, %d left out", calls, skipped)
	}
}

package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// Calls are sent as they happen, for programs as lines and for browsers as events.
func TestLiveCalls(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	calling := make(chan struct{})
	go func() {
		defer close(calling)
		for ctx.Err() == nil {
			s.call(t)
			time.Sleep(time.Millisecond)
		}
	}()
	var got []*telemetry.Call
	err := new(admin.Reader).Follow(ctx, s.URL, url.Values{"failed": {"true"}, "side": {"server"}, "n": {"3"}}, func(c *telemetry.Call, _ uint64) { got = append(got, c) })
	if err != nil || len(got) != 3 {
		t.Fatalf("%d calls, %v", len(got), err)
	}
	for _, c := range got {
		if c.Method != "Arith.Fail" || c.Side != "server" || c.Code.String() != "not found" || c.Message != "" {
			t.Errorf("got %+v", c)
		}
	}
	status, body, h := s.get(t, "/calls.events?n=2&method=Arith.M*")
	if status != http.StatusOK || h.Get("Content-Type") != "text/event-stream" || strings.Count(body, "event: call\ndata: {") != 2 || !strings.Contains(body, "event: end\n") {
		t.Errorf("%d %v\n%s", status, h, body)
	}
	if _, body, _ := s.get(t, "/calls?for=10ms&method=No.Such"); body != "" {
		t.Errorf("calls of no method: %s", body)
	}
	cancel()
	<-calling
}

func TestLiveCallsAreChecked(t *testing.T) {
	s := newSite(t)
	for _, query := range []string{"side=x", "failed=x", "slower=x", "slower=-1s", "sampled=0", "sampled=x", "sampled=NaN", "rate=0", "rate=x", "for=x", "for=2h", "n=0", "n=x"} {
		if status, body, _ := s.get(t, "/calls.ndjson?"+query); status != http.StatusBadRequest || !strings.Contains(body, "want") {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	if status, _, _ := s.get(t, "/calls.xml"); status != http.StatusNotFound {
		t.Errorf("calls.xml: %d", status)
	}
}

// A page that is closed ends the lists of its viewers.
func TestCloseEndsLiveCalls(t *testing.T) {
	s := newSite(t)
	answer, err := http.Get(s.URL + "/calls?method=No.Such")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	s.page.Close()
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Error(err)
	}
}

func TestReader(t *testing.T) {
	const token = "0123456789abcdef"
	s := newSite(t, admin.Token(token))
	ctx := context.Background()
	d, err := (&admin.Reader{Token: token}).Document(ctx, strings.TrimPrefix(s.URL, "http://"), "methods")
	if err != nil || d.Process.Name != "shop" || methodIn(d, "server", "Arith.Mul") == nil {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := new(admin.Reader).Document(ctx, s.URL, "methods"); err == nil || !strings.Contains(err.Error(), "needs a token") {
		t.Errorf("without a token: %v", err)
	}
	for _, address := range []string{"", "ftp://x", "http://", "http://user:pass@127.0.0.1:1"} {
		if _, err := new(admin.Reader).Document(ctx, address, "all"); err == nil || strings.Contains(err.Error(), "user:pass") && !strings.Contains(err.Error(), "***") {
			t.Errorf("%q: %v", address, err)
		}
	}
	limited, cancel := context.WithCancel(ctx)
	cancel()
	if err := (&admin.Reader{Token: token}).Follow(limited, s.URL, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

package events_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/events"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h events.Hub
		v, err := h.Join("a", "b")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		done := make(chan struct{})
		stills := 0
		go func() {
			defer close(done)
			v.Serve(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), func() { stills++ }, []byte("first\n\n"))
		}()
		h.Send("a", events.Event("x", []byte("{\"n\":1}\n")))
		h.Send("c", []byte("of others"))
		time.Sleep(25 * time.Second)
		cancel()
		<-done
		want := "first\n\nevent: x\ndata: {\"n\":1}\n\n" + strings.Repeat("event: ping\ndata: {}\n\n", 2)
		if w.Body.String() != want || stills != 2 || w.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%q, %d stills", w.Body, stills)
		}
	})
}

// At the deadline of its request a viewer is asked to come back at once, and only then.
func TestServeUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h events.Hub
		v, err := h.Join("a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		v.Serve(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), func() {})
		if want := "retry: 3000\n\nretry: 100\nevent: again\ndata: {}\n\n"; w.Body.String() != want {
			t.Errorf("%q, want %q", w.Body, want)
		}
	})
}

// A viewer that does not read ends, and does not hold the others.
func TestSlowViewer(t *testing.T) {
	var h events.Hub
	slow, _ := h.Join("a")
	for range 20 {
		h.Send("a", []byte("x"))
	}
	if h.Len() != 0 {
		t.Error("a viewer that does not read is still there")
	}
	h.Leave(slow)
	w := httptest.NewRecorder()
	slow.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil), func() {})
}

func TestBounds(t *testing.T) {
	var h events.Hub
	for range events.MaxViewers {
		if _, err := h.Join("a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Join("a"); !errors.Is(err, events.ErrTooMany) {
		t.Errorf("one viewer too many: %v", err)
	}
	if n := h.Topics()["a"]; n != events.MaxViewers {
		t.Errorf("%d viewers of the topic", n)
	}
	if h.Close(); h.Len() != 0 {
		t.Error("viewers are left after Close")
	}
	if _, err := h.Join("a"); err == nil {
		t.Error("a viewer has joined after Close")
	}
}

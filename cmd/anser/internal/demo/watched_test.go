package demo

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// The page of a process of the demo has the trace of the seconds before a slow call.
func TestFlightOfSlowCall(t *testing.T) {
	w, err := watch(watchOptions{service: "arith", id: "arith-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	s := anser.NewServer(w.calls)
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *int) (*int, error) {
		time.Sleep(flightCall)
		return in, nil
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		s.Close()
		<-served
	}()
	c, err := anser.Dial(l.Addr().String()) // not measured: a client would have a slow call too
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer http.DefaultClient.CloseIdleConnections()
	page := func(path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if code, list := page("flight/"); code != http.StatusOK || !strings.Contains(list, "0 were made, and 0 slow calls had none") {
		t.Errorf("before a call: %d %s", code, list)
	}
	if _, err := anser.Call[int](t.Context(), c, "Arith.Mul", new(1)); err != nil {
		t.Fatal(err)
	}
	var list string
	if !poll(t.Context(), func() bool {
		_, list = page("flight/")
		return strings.Contains(list, "1 were made, and 0 slow calls had none")
	}) {
		t.Fatalf("after the call: %s", list)
	}
	if code, trace := page("flight/1.trace"); code != http.StatusOK || !strings.HasPrefix(trace, "go 1.") {
		t.Errorf("the recording: %d %.20q", code, trace)
	}
}

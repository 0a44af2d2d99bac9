package prometheus_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// ask returns the answer of a handler.
func ask(ctx context.Context, h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/targets", nil))
	return w
}

func TestTargets(t *testing.T) {
	m := registry.NewMemory()
	if w := ask(t.Context(), prometheus.Targets(m)); w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != "[]" {
		t.Errorf("an empty registry: %d %s", w.Code, w.Body)
	}
	for _, in := range []registry.Instance{
		{Service: "arith", ID: "arith-1", Address: "127.0.0.1:1", Version: "1.0", Zone: "a"},
		{Service: "arith", Address: "[::1]:2", Group: "blue", State: registry.Disabled},
		{Service: "arith", Address: "unix:///run/arith"},
		{Service: "arith", Address: "quic://127.0.0.1:3"},
		{Service: "posts", ID: "posts 1", Address: "127.0.0.1:4"},
	} {
		if err := m.Register(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	const arith = `{"targets":["[::1]:2"],"labels":{"group":"blue","id":"[::1]:2","service":"arith"}},` +
		`{"targets":["127.0.0.1:1"],"labels":{"id":"arith-1","service":"arith","version":"1.0","zone":"a"}}`
	const posts = `{"targets":["127.0.0.1:4"],"labels":{"id":"posts 1","service":"posts"}}`
	for _, tt := range []struct {
		services []string
		want     string
	}{
		{nil, "[" + arith + "," + posts + "]"},
		{[]string{"posts"}, "[" + posts + "]"},
		{[]string{"posts", "none"}, "[" + posts + "]"},
	} {
		w := ask(t.Context(), prometheus.Targets(m, tt.services...))
		if got := strings.TrimSpace(w.Body.String()); got != tt.want || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%v: %d %v\n%s\nwant\n%s", tt.services, w.Code, w.Header(), got, tt.want)
		}
	}
}

// away is a registry that cannot be reached.
type away struct{}

func (away) Watch(ctx context.Context, _ string, _ func([]registry.Instance), trouble func(error)) error {
	trouble(errors.New("the registry is away"))
	<-ctx.Done()
	return ctx.Err()
}

// Without the registry there is no list, so that Prometheus keeps the one that it has.
func TestTargetsWithoutRegistry(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w := ask(ctx, prometheus.Targets(away{}, "arith")); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the registry is away") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(t.Context(), prometheus.Targets(away{})); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "name the services") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

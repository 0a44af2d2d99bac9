package httpconnect_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/httpconnect"
)

// Misuse is an error of Dial or Serve, and never a panic.
func TestMisuse(t *testing.T) {
	dial := func(o anser.DialOption) error {
		c, err := anser.Dial("http://127.0.0.1:1", o)
		if err == nil {
			c.Close()
		}
		return err
	}
	serve := func(h *httpconnect.Handler) error {
		s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
		defer s.Close()
		return s.Serve(h)
	}
	for name, misuse := range map[string]func() error{
		"HTTP nil option":      func() error { return dial(httpconnect.HTTP(nil)) },
		"HTTPS nil option":     func() error { return dial(httpconnect.HTTPS(nil)) },
		"HTTP Via nil":         func() error { return dial(httpconnect.HTTP(httpconnect.Via(nil))) },
		"HTTPS Via nil":        func() error { return dial(httpconnect.HTTPS(httpconnect.Via(nil))) },
		"zero Handler":         func() error { return serve(new(httpconnect.Handler)) },
		"zero Handler, Accept": func() error { _, err := new(httpconnect.Handler).Accept(); return err },
		"zero Handler, Close":  func() error { return new(httpconnect.Handler).Close() },
	} {
		if err := misuse(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	w := httptest.NewRecorder()
	new(httpconnect.Handler).ServeHTTP(w, httptest.NewRequest(http.MethodConnect, "http://a/", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a zero Handler answers %d", w.Code)
	}
}

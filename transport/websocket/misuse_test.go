package websocket_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/websocket"
)

// Misuse is an error of Dial or Serve, and never a panic.
func TestMisuse(t *testing.T) {
	dial := func(o anser.DialOption) error {
		c, err := anser.Dial("ws://127.0.0.1:1", o)
		if err == nil {
			c.Close()
		}
		return err
	}
	serve := func(h *websocket.Handler) error {
		s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
		defer s.Close()
		return s.Serve(h)
	}
	for name, misuse := range map[string]func() error{
		"WS nil option":         func() error { return dial(websocket.WS(nil)) },
		"WSS nil option":        func() error { return dial(websocket.WSS(nil)) },
		"WS Via nil":            func() error { return dial(websocket.WS(websocket.Via(nil))) },
		"WSS Via nil":           func() error { return dial(websocket.WSS(websocket.Via(nil))) },
		"zero Handler":          func() error { return serve(new(websocket.Handler)) },
		"zero Handler, Accept":  func() error { _, err := new(websocket.Handler).Accept(); return err },
		"zero Handler, Close":   func() error { return new(websocket.Handler).Close() },
		"NewHandler nil option": func() error { return serve(websocket.NewHandler("ws://127.0.0.1:1", nil)) },
	} {
		if err := misuse(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	w := httptest.NewRecorder()
	new(websocket.Handler).ServeHTTP(w, httptest.NewRequest(http.MethodConnect, "http://a/", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a zero Handler answers %d", w.Code)
	}
}

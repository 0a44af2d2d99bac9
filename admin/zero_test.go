package admin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// Misuse of a page is an error and never a panic.
func TestPageNotMade(t *testing.T) {
	for name, m := range map[string]*telemetry.Meter{"nil": nil, "zero": new(telemetry.Meter)} {
		if _, err := admin.New(m); err == nil {
			t.Errorf("a meter that is %s is accepted", name)
		}
	}
	for name, p := range map[string]*admin.Page{"nil": nil, "zero": new(admin.Page)} {
		t.Run(name, func(t *testing.T) {
			if p.Close() == nil || p.ListenAndServe("127.0.0.1:0") == nil || p.Serve(nil) == nil {
				t.Error("no error")
			}
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil))
			if w.Code != http.StatusInternalServerError {
				t.Error(w.Code, w.Body)
			}
		})
	}
}

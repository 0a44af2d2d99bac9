package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// A request whose caller says that it may have run is not forwarded: the instance that gets it may
// not know its key, and would run it. Without that word it is, with its key, and a request of an
// idempotent method in any case.
func TestRepeatedKeys(t *testing.T) {
	r := registry.NewMemory()
	var ran atomic.Int64
	serve(t, r, registry.Instance{Service: "shop"}, func(s *anser.Server) {
		count := func(context.Context, *args) (*reply, error) { return &reply{ran.Add(1)}, nil }
		anser.Handle(s, "Shop.Pay", count, anser.Deduplicate())
		anser.Handle(s, "Shop.Find", count, anser.Deduplicate(), anser.Idempotent())
	})
	g, addr := start(t, r, parse(t, ""))
	await(t, g, "shop", 2)
	if status, body := post(t, "http://"+addr+"/Shop.Pay", `{}`, "Idempotency-Key", "k", "Anser-Repeated", "true"); status != http.StatusServiceUnavailable || !strings.Contains(body, `"outcome":"unknown"`) {
		t.Errorf("a repeat: %d %s", status, body)
	}
	for range 2 {
		if status, body := post(t, "http://"+addr+"/Shop.Pay", `{}`, "Idempotency-Key", "k"); status != http.StatusOK || body != `{"C":1}` {
			t.Errorf("%d %s", status, body)
		}
	}
	if status, body := post(t, "http://"+addr+"/Shop.Find", `{}`, "Idempotency-Key", "f", "Anser-Repeated", "true"); status != http.StatusOK || body != `{"C":2}` {
		t.Errorf("an idempotent method: %d %s", status, body)
	}
}

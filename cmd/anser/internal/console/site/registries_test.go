package site_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
	"github.com/anser-rpc/anser/registry"
)

// A console shows the services of all registries, and changes those of the first one.
func TestRegistries(t *testing.T) {
	one, two := registry.NewMemory(), registry.NewMemory()
	if err := one.Register(t.Context(), registry.Instance{Service: "arith", ID: "a", Version: "2", Address: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if err := two.Register(t.Context(), registry.Instance{Service: "posts", ID: "b", Version: "2", Address: "127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, openWith(t, one, site.Options{
		Audit: filepath.Join(t.TempDir(), "audit.jsonl"), Also: []site.Registry{{Name: "other://", Kind: "memory", Resolver: two}},
	}).URL())
	b.session()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, text, _ := b.send("GET", "/api/system", "")
		if strings.Contains(text, `"registry":"memory://"`) && strings.Contains(text, `"registry":"other://"`) && strings.Count(text, `"healthy":true`) == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the system is %s", text)
		}
	}
	for service, want := range map[string]int{"arith": 200, "posts": 502} {
		instance := map[string]string{"arith": "a", "posts": "b"}[service]
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/api/rules/" + service, ""},
			{"PUT", "/api/rules/" + service, `{"text":"rules: {}"}`},
			{"POST", "/api/instances", `{"service":"` + service + `","instance":"` + instance + `","state":"draining"}`},
			{"POST", "/api/canary", `{"service":"` + service + `","version":"2","share":1,"bounds":{"errors":0.5}}`},
		} {
			status, text, _ := b.send(c.method, c.path, c.body)
			if status != want || want != 200 && !strings.Contains(text, "is in the registry other://") {
				t.Errorf("%s %s of %s: %d %s, want %d", c.method, c.path, service, status, text, want)
			}
		}
	}
	if doc, err := one.Load(t.Context(), "rules/posts"); err != nil || doc.Revision != 0 {
		t.Errorf("rules of a service of the other registry are %+v, %v", doc, err)
	}
}

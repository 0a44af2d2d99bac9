package admin_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
	"github.com/anser-rpc/anser/telemetry"
)

// The page has the text of the rules in force, which registries answer, and where options are from.
func TestRulesAndOrigins(t *testing.T) {
	reg := registry.NewMemory()
	rules := route.RuleSet{Methods: []route.MethodRule{
		{
			Name: "late", When: route.Match{Methods: route.Patterns{"Shop.Find*", "Shop.Buy"}, Metadata: map[string]route.Patterns{"tenant": {"a"}}},
			Timeout: route.Duration(3 * time.Second), Mode: "failfast",
		},
		{Name: "by http://user:hunter2@h/", Attempts: 2, Rate: &route.Rate{PerSecond: 5, Burst: 9}, Concurrency: 4},
	}}
	if _, err := route.Save(t.Context(), reg, "shop", 0, rules, "me", "see http://user:hunter2@h/"); err != nil {
		t.Fatal(err)
	}
	meter := telemetry.New()
	scheme := registry.Scheme{Name: "test", Open: func(*url.URL) (registry.Resolver, string, error) { return reg, "shop", nil }}
	c, err := anser.Dial("test://h:1/shop", scheme, meter.Option(), route.Rules(), anser.DialOptionsOf("flag --attempts", anser.Attempts(4)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	page, err := admin.New(meter)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(page)
	defer http.DefaultClient.CloseIdleConnections()
	defer h.Close()
	s := &site{Server: h, meter: meter, page: page, client: c}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if st := c.Status().Rules; st != nil && st.Version == 1 || time.Now().After(deadline) {
			break
		}
	}
	for path, want := range map[string]string{
		"/registries":      `{"name":"late","when":{"methods":["Shop.Find*","Shop.Buy"]`,
		"/registries.json": `"timeout": "3s"`,
		"/options":         "flag --attempts",
		"/options.json":    `"by": "flag --attempts"`,
	} {
		status, body, _ := s.get(t, path)
		if status != http.StatusOK || !strings.Contains(body, want) || strings.Contains(body, "hunter2") {
			t.Errorf("%s has no %q: %d\n%s", path, want, status, body)
		}
	}
	var overrides []string
	d := s.document(t, "/options.json")
	for _, o := range d.Clients[0].Overrides {
		overrides = append(overrides, strings.Join([]string{o.Option, o.Value, o.Methods, o.When, o.By}, "|"))
	}
	if want := []string{
		`Timeout|3s|Shop.Find*, Shop.Buy|metadata {"tenant":"a"}|rules of version 1, methods[0] late`,
		`WithFailMode|failfast|Shop.Find*, Shop.Buy|metadata {"tenant":"a"}|rules of version 1, methods[0] late`,
	}; len(overrides) != 5 || overrides[0] != want[0] || overrides[1] != want[1] || !strings.HasPrefix(overrides[2], "Attempts|2|*||rules of version 1, methods[1] by ") {
		t.Errorf("the overrides are %q", overrides)
	}
	_, body, _ := s.get(t, "/options")
	for _, want := range []string{"anser.Timeout, for calls of Shop.Find*", "4, of the client", "rate, a limit of the rules", "5 per second, 9 at once"} {
		if !strings.Contains(body, want) {
			t.Errorf("the options have no %q:\n%s", want, body)
		}
	}
	if _, body, _ := s.get(t, "/registries"); !strings.Contains(body, "test://h:1  answers") {
		t.Errorf("no registry in\n%s", body)
	}
	if d := s.document(t, "/clients.json"); d.Clients[0].Rules == nil || d.Clients[0].Rules.Text != nil {
		t.Errorf("the page of clients has the text of the rules: %+v", d.Clients[0].Rules)
	}
}

package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/simulate"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// instances returns the instances that a query asks for.
func instances(t *testing.T, h http.Handler, query string) []model.Instance {
	t.Helper()
	return get[model.InstancePage](t, h, "/api/instances?"+query).Instances
}

func ids(list []model.Instance) string {
	var names []string
	for _, in := range list {
		names = append(names, in.ID[strings.LastIndex(in.ID, "service-")+len("service-"):])
	}
	return strings.Join(names, " ")
}

func TestInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, 12)
		s.sim.Hook(4, simulate.Hook{Serve: http.NotFoundHandler()})
		plain := registry.Instance{Service: "shop.service-000", ID: "shop.service-000-13", Address: "10.1.1.1:1", Version: "9"}
		if err := s.registry.Register(t.Context(), plain); err != nil {
			t.Fatal(err)
		}
		drained := route.RuleSet{Instances: []route.InstanceRule{{Match: route.Select{ID: route.Patterns{"pay.service-001-2"}}, State: "draining"}}}
		if _, err := route.Save(t.Context(), s.registry, "pay.service-001", 0, drained, "ada", ""); err != nil {
			t.Fatal(err)
		}
		advance(s, 5*time.Second)
		for query, want := range map[string]string{
			"service=shop.service-000":                                  "000-1 000-2 000-3 000-4 000-5 000-6 000-7 000-8 000-9 000-10 000-11 000-12 000-13",
			"service=shop.service-000&offset=8&limit=3":                 "000-9 000-10 000-11",
			"service=shop.service-000&offset=99":                        "",
			"service=shop.service-000&limit=0":                          "",
			"service=shop.service-000&first=shop.service-000-7&limit=3": "000-7 000-1 000-2",
			"service=shop.service-000&first=none&limit=1":               "000-1",
			"service=shop.service-000&sort=-id&limit=2":                 "000-13 000-12",
			"service=pay.service-001&sort=-rate&limit=2":                "001-10 001-9",
			"q=SERVICE-002-1":                                           "002-1 002-10 002-11 002-12",
			"q=10.1.1.1":                                                "000-13",
			"look=stale":                                                "000-5",
			"look=out,stale":                                            "001-2 000-5",
			"look=unread":                                               "000-13",
			"look=bad":                                                  "001-12 000-1",
			"sort=-service&limit=1":                                     "000-1",
			"sort=-version&limit=1":                                     "000-13",
			"sort=-state&look=out,stale&limit=1":                        "000-5",
			"service=none":                                              "",
		} {
			if got := ids(instances(t, s, query)); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		page := get[model.InstancePage](t, s, "/api/instances?service=shop.service-000&q=000-1&offset=2&limit=1")
		if page.Total != 13 || page.Matching != 5 || page.Offset != 2 || ids(page.Instances) != "000-11" {
			t.Errorf("%+v", page)
		}
		m := get[model.InstanceMap](t, s, "/api/instances/map?by=rate")
		if m.Total != 37 || m.Matching != 37 || len(m.Services) != 3 || m.Services[0].Service != "pay.service-001" || m.Most <= 0 {
			t.Fatalf("%+v", m)
		}
		if row := m.Services[2]; row.Looks != "booot"+"ooooooo"+"n" || len(row.Shares) != 13 || row.Shares[12] != '0' {
			t.Errorf("%+v", row)
		}
		if row := m.Services[0]; row.Looks[1] != model.LooksOut || !strings.Contains(m.Services[0].Shares+m.Services[1].Shares+m.Services[2].Shares, "w") {
			t.Errorf("%+v: no value is the largest", m.Services)
		}
		m = get[model.InstanceMap](t, s, "/api/instances/map?q=000-1")
		if m.Matching != 5 || len(m.Services) != 1 || len(m.Services[0].Looks) != 5 || m.Services[0].Shares != "" {
			t.Errorf("%+v", m)
		}
		early := registry.Instance{Service: "shop.service-000", ID: "shop.service-000-0", Address: "10.1.1.2:1"}
		if err := s.registry.Register(t.Context(), early); err != nil {
			t.Fatal(err)
		}
		advance(s, 2*time.Second)
		if got := ids(instances(t, s, "service=shop.service-000&limit=2")); got != "000-0 000-1" {
			t.Errorf("after another one has come: %s", got)
		}
	})
}

// The map and the parts of the list of a large system are small, whatever a viewer asks for.
func TestInstancesOfALargeSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, 1)
		for n := range 9000 {
			in := registry.Instance{Service: fmt.Sprintf("big-%d", n%6), ID: fmt.Sprintf("big-%d-%d", n%6, n/6), Address: fmt.Sprintf("10.0.%d.%d:1", n>>8, n&255), Zone: "zone-a", Tags: map[string]string{"n": fmt.Sprint(n)}}
			if err := s.registry.Register(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		advance(s, 2*time.Second)
		for path, most := range map[string]int{
			"/api/instances": 400_000, "/api/instances?limit=100000": 400_000, "/api/instances?limit=100&sort=-rate&offset=5000": 40_000, "/api/instances/map?by=p99": 20_000, "/api/services/big-3": 100_000,
		} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			t.Logf("%s: %d bytes", path, w.Body.Len())
			if w.Code != http.StatusOK || w.Body.Len() > most {
				t.Errorf("%s: %d with %d bytes, want %d at most", path, w.Code, w.Body.Len(), most)
			}
		}
		if list := instances(t, s, "offset=8999"); len(list) != 2 || list[0].ID != "big-5-1499" {
			t.Errorf("the last instances are %+v", list)
		}
	})
}

// An instance that has ended is out for its callers and has a page that does not answer: both are
// said, and what the callers say comes first.
func TestInstanceThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 2, 2)
		const ended = "pay.service-001-1"
		s.sim.Hook(2, simulate.Hook{Serve: http.NotFoundHandler()})
		s.sim.Hook(0, simulate.Hook{Change: func(d *admin.Document) {
			for i := range d.Clients {
				for j := range d.Clients[i].Instances {
					if in := &d.Clients[i].Instances[j]; in.Key() == ended {
						in.Status = "down"
					}
				}
			}
		}})
		advance(s, 5*time.Second)
		list := instances(t, s, "service=pay.service-001&look=bad")
		if len(list) != 1 || list[0].ID != ended {
			t.Fatalf("%+v are out, want %s", list, ended)
		}
		if in := list[0]; in.Health != model.Down || in.Stale.IsZero() || !strings.Contains(in.Why, "cannot reach it; the admin page at ") {
			t.Errorf("%+v", in)
		}
	})
}

package console_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/simulate"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// texts returns the texts of the latest changes, the first one first.
func texts(t *testing.T, s *site) (list []string) {
	t.Helper()
	for _, c := range slices.Backward(get[[]model.Change](t, s, "/api/changes")) {
		text := c.Kind + ": " + c.Text
		if c.By != "" {
			text += " (" + c.By + ")"
		}
		list = append(list, text)
	}
	return list
}

func expectTexts(t *testing.T, s *site, want ...string) {
	t.Helper()
	if got := texts(t, s); !slices.Equal(got, want) {
		t.Errorf("the changes are %q, want %q", got, want)
	}
}

// Instances are shown as the rules make them for callers, not as they announce themselves.
func TestStatesOfRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, 3)
		const service = "shop.service-000"
		weight := 10
		save := func(version uint64, rules ...route.InstanceRule) uint64 {
			d, err := route.Save(t.Context(), s.registry, service, version, route.RuleSet{Instances: rules}, "ada", "new disk")
			if err != nil {
				t.Fatal(err)
			}
			return d.Version
		}
		first := route.InstanceRule{Match: route.Select{ID: route.Patterns{service + "-1"}}, State: "draining", Tags: map[string]string{"disk": "old"}}
		version := save(0, first)
		s.Close()
		s.Console = s.start(t) // which may have begun before the rules
		advance(s, 3*time.Second)
		expectTexts(t, s) // what was there at first is no change
		in := instances(t, s, "service="+service)
		if in[0].State != "draining" || in[0].Announced != "up" || !slices.Equal(in[0].ByRule, []string{"state", "tags"}) || in[0].Tags["disk"] != "old" || in[1].ByRule != nil {
			t.Errorf("the instances are %+v", in)
		}
		if v := get[model.System](t, s, "/api/system").Services[0]; v.Drained != 1 || v.Up != 2 {
			t.Errorf("the service is %+v", v)
		}
		save(version, route.InstanceRule{Match: route.Select{ID: route.Patterns{service + "-2"}}, Weight: &weight})
		advance(s, 2*time.Second)
		expectTexts(t, s, "state: up, was draining, as the rule is gone (ada)", "weight: weight 10, was 100, by a rule (ada)", "rules: version 2 of the rules: new disk (ada)")
	})
}

func TestTextsOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 2, 2)
		advance(s, 3*time.Second)
		seen := func(status, why string, breakers ...admin.Breaker) {
			s.sim.Hook(0, simulate.Hook{Change: func(d *admin.Document) {
				d.Clients[0].Instances[0].Status, d.Clients[0].Instances[0].Why, d.Clients[0].Instances[0].Breakers = status, why, breakers
			}})
			advance(s, 2*time.Second)
		}
		seen("ejected", "it does not answer pings")
		seen("down", "it could not be reached at the last attempt")
		seen("connected", "", admin.Breaker{Method: "Items.Get", State: anser.StateOpen})
		seen("connected", "")
		joined := registry.Instance{ID: "three", Service: "pay.service-001", Address: "10.0.0.3:1", Version: "2.0"}
		if err := s.registry.Register(t.Context(), joined); err != nil {
			t.Fatal(err)
		}
		advance(s, 2*time.Second)
		if err := s.registry.Deregister(t.Context(), joined); err != nil {
			t.Fatal(err)
		}
		advance(s, 2*time.Second)
		s.sim.Hook(3, simulate.Hook{Change: func(d *admin.Document) { d.Process.ID = "00000000000000ff" }})
		advance(s, 2*time.Second)
		by := "shop.service-000-1"
		expectTexts(t, s,
			"ejected: ejected by "+by+": it does not answer pings", "ejected: "+by+" cannot reach it",
			"returned: callers reach it again", "breaker: the breaker of "+by+" for Items.Get opened", "breaker: the breaker of "+by+" for Items.Get is no longer open",
			"joined: joined at 10.0.0.3:1, version 2.0", "left: left the registry", "process: a new process serves it, started at 00:00:00 UTC",
		)
	})
}

// Limits that refuse calls are seen once, however often they do so.
func TestRefusedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 1, 1)
		var refused, unknown atomic.Uint64
		s.sim.Hook(0, simulate.Hook{Change: func(d *admin.Document) {
			m := &d.Methods[0]
			m.Refused = refused.Load() + unknown.Load()
			for code, n := range map[anser.Code]uint64{anser.ResourceExhausted: refused.Load(), anser.Unimplemented: unknown.Load()} {
				if n > 0 {
					m.Codes = append(m.Codes, admin.Series{Code: code, Times: admin.Histogram{Scale: m.Codes[0].Times.Scale, Counts: []uint64{n}, Count: n}})
				}
			}
		}})
		advance(s, 3*time.Second)
		for n := range 10 {
			refused.Add(uint64(n % 2 * 30))
			advance(s, time.Second)
		}
		expectTexts(t, s, "limit: limits refuse 30.0 calls of Items.Get per second")
		advance(s, 15*time.Second)
		said := []string{"limit: limits refuse 30.0 calls of Items.Get per second", "limit: limits no longer refuse calls of Items.Get"}
		expectTexts(t, s, said...)
		// Calls that do not run for other reasons are refused by no limit.
		for range 5 {
			unknown.Add(30)
			advance(s, time.Second)
		}
		if m := get[model.MethodDetail](t, s, "/api/services/shop.service-000/methods/Items.Get").Method; m.Refused != 30 {
			t.Errorf("%.1f calls per second did not run, want 30", m.Refused)
		}
		expectTexts(t, s, said...)
	})
}

package operate_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/operate"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

func ptr[T any](v T) *T { return &v }

func TestSetInstance(t *testing.T) {
	in := registry.Instance{Service: "arith", ID: "arith-1", Address: "127.0.0.1:1", Tags: map[string]string{"env": "blue"}}
	all := route.RuleSet{Instances: []route.InstanceRule{{Match: route.Select{ID: route.Patterns{"arith-*"}}, Weight: ptr(50)}}}
	rules := all
	set := func(to operate.Change, want registry.Instance) {
		t.Helper()
		next, err := operate.SetInstance(rules, in, to)
		if err != nil {
			t.Fatal(err)
		}
		rules = next
		got := rules.Adjust(in)
		if want.Weight == 0 {
			want.Weight = 50
		}
		if got.State != want.State || got.Weight != want.Weight || got.Tags["env"] != want.Tags["env"] || got.Tags["more"] != want.Tags["more"] {
			t.Errorf("after %s the instance is %+v", &to, got)
		}
	}
	blue := map[string]string{"env": "blue"}
	set(operate.Change{State: ptr(registry.Disabled)}, registry.Instance{State: registry.Disabled, Tags: blue})
	set(operate.Change{Weight: ptr(10)}, registry.Instance{State: registry.Disabled, Weight: 10, Tags: blue})
	set(operate.Change{Tags: map[string]string{"env": "", "more": "x"}}, registry.Instance{State: registry.Disabled, Weight: 10, Tags: map[string]string{"more": "x"}})
	if len(rules.Instances) != 2 {
		t.Errorf("there are %d rules", len(rules.Instances))
	}
	set(operate.Change{State: ptr(registry.Up), Weight: ptr(0)}, registry.Instance{Tags: map[string]string{"more": "x"}})
	set(operate.Change{Tags: map[string]string{"env": "blue", "more": ""}}, registry.Instance{Tags: blue})
	if !reflect.DeepEqual(rules, all) {
		t.Errorf("nothing is changed any more, and the rules are %+v", rules)
	}

	// A rule for all of them, and the instance's own record.
	rules.Instances[0].State = "disabled"
	set(operate.Change{State: ptr(registry.Up)}, registry.Instance{Tags: blue})
	in.State = registry.Disabled
	rules = route.RuleSet{}
	set(operate.Change{State: ptr(registry.Up), Weight: ptr(50)}, registry.Instance{Tags: blue})
}

func TestRefusedInstances(t *testing.T) {
	for want, test := range map[string]struct {
		in registry.Instance
		to operate.Change
	}{
		"neither a state":   {registry.Instance{ID: "a"}, operate.Change{}},
		"for a pattern":     {registry.Instance{ID: "a*"}, operate.Change{Weight: ptr(1)}},
		"begins with !":     {registry.Instance{ID: "!a"}, operate.Change{Weight: ptr(1)}},
		"is no weight":      {registry.Instance{ID: "a"}, operate.Change{Weight: ptr(-1)}},
		"drains by itself":  {registry.Instance{ID: "a", State: registry.Draining}, operate.Change{State: ptr(registry.Up)}},
		"a tag has a name ": {registry.Instance{ID: "a"}, operate.Change{Tags: map[string]string{"": "x"}}},
	} {
		if _, err := operate.SetInstance(route.RuleSet{}, test.in, test.to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestCanary(t *testing.T) {
	rules := route.RuleSet{Split: []route.SplitRule{{Name: "other", Percent: 5, To: route.Select{Zone: route.Patterns{"a"}}}}}
	to := route.Select{Version: route.Patterns{"2.0"}}
	next, err := operate.SetCanary(rules, to, 10, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if next, err = operate.SetCanary(next, to, 20, time.Time{}); err != nil || len(next.Split) != 2 {
		t.Fatalf("%+v, %v", next, err)
	}
	if c, ok := operate.Canary(&next); !ok || c.Percent != 20 || next.Split[0].Name != "other" || len(rules.Split) != 1 {
		t.Errorf("the canary is %+v", c)
	}
	if _, err := operate.SetCanary(next, to, 101, time.Time{}); err == nil {
		t.Error("a share of 101 % was accepted")
	}
}

func TestFaults(t *testing.T) {
	fault := route.FaultRule{Percent: 10, Abort: true, Until: time.Now().Add(time.Hour)}
	rules, err := operate.AddFault(route.RuleSet{Faults: []route.FaultRule{{Name: "old", Until: time.Now().Add(-time.Hour), Percent: 1, Abort: true}}}, "all", fault)
	if err != nil {
		t.Fatal(err)
	}
	fault.Percent = 20
	if rules, err = operate.AddFault(rules, "all", fault); err != nil {
		t.Fatal(err)
	}
	if list := operate.Faults(&rules); len(list) != 1 || list[0].Name != "all" || list[0].Percent != 20 || len(rules.Faults) != 2 {
		t.Errorf("the faults are %+v", list)
	}
	if _, ok := operate.RemoveFault(rules, "other"); ok {
		t.Error("a fault that is not there was removed")
	}
	if next, ok := operate.RemoveFault(rules, "all"); !ok || len(next.Faults) != 1 {
		t.Errorf("the rules are %+v", next)
	}
	for _, until := range []time.Time{{}, time.Now().Add(-time.Second), time.Now().Add(25 * time.Hour)} {
		fault.Until = until
		if _, err := operate.AddFault(rules, "all", fault); err == nil {
			t.Errorf("a fault until %v was accepted", until)
		}
	}
}

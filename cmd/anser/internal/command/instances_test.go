package command_test

import (
	"testing"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

func TestInstances(t *testing.T) {
	_, file, _ := twoVersions(t)
	run(t, "instances", "set", "arith", "arith-1", "--state", "disabled", "-m", "a test", "--author", "ada").
		expect(t, 0, "see arith-1 as disabled with the weight 100", "at version 1")
	run(t, "explain", "arith", "Arith.Mul").expect(t, 0, "version 1", "pick      arith-2")
	run(t, "instances", "set", "arith", "arith-1", "--weight", "7", "--tag", "env=gray").expect(t, 0, "disabled with the weight 7")
	d, err := route.Load(t.Context(), file, "arith")
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Rules.Adjust(registry.Instance{ID: "arith-1"}); got.State != registry.Disabled || got.Weight != 7 || got.Tags["env"] != "gray" || len(d.Rules.Instances) != 1 {
		t.Errorf("the rules are %+v", d.Rules)
	}
	run(t, "rules", "history", "arith").expect(t, 0, "arith-1: disabled: a test", "ada")
	run(t, "instances", "set", "arith", "arith-1", "--state", "up", "--weight", "0", "--tag", "env=").expect(t, 0, "arith-1 as up with the weight 100", "at version 3")
	if d, err = route.Load(t.Context(), file, "arith"); err != nil || len(d.Rules.Instances) != 0 {
		t.Errorf("the rules are %+v, %v", d.Rules, err)
	}

	run(t, "instances", "set", "arith", "arith-9", "--state", "up").expect(t, 2, `has no instance "arith-9": it has arith-1, arith-2`)
	run(t, "instances", "set", "none", "arith-1", "--state", "up").expect(t, 2, "none has no instance")
	run(t, "instances", "set", "arith", "arith-1").expect(t, 2, "nothing to set")
	run(t, "instances", "set", "arith", "arith-1", "--state", "away").expect(t, 2, `unknown instance state "away"`)
	run(t, "instances", "set", "arith", "arith-1", "--weight", "-1").expect(t, 2, "is no weight")
	run(t, "instances", "set", "arith").expect(t, 2, "arguments are missing")
}

package demo

import (
	"slices"
	"testing"
)

func TestScript(t *testing.T) {
	names := func(o Options) (all []string) {
		for _, s := range o.chosen() {
			all = append(all, s.name)
		}
		return all
	}
	if got := names(Options{}); !slices.Equal(got, Steps()) {
		t.Errorf("without a choice: %q", got)
	}
	if got := names(Options{Steps: []string{"outage", "kill"}}); !slices.Equal(got, []string{"kill", "outage"}) {
		t.Errorf("chosen: %q", got)
	}
	if err := CheckSteps([]string{"kill", "flood"}); err == nil {
		t.Error("there is a step flood")
	}
	if err := CheckSteps(Steps()); err != nil {
		t.Error(err)
	}
}

// Every instance has its turn, and no service twice in a row.
func TestTurn(t *testing.T) {
	seen := make(map[int]bool)
	for n := range len(services) * instancesOfService {
		seen[turn(n)] = true
		if turn(n)/instancesOfService == turn(n+1)/instancesOfService {
			t.Errorf("turns %d and %d are of the same service", n, n+1)
		}
	}
	if len(seen) != len(services)*instancesOfService {
		t.Errorf("%d instances have their turn", len(seen))
	}
}

func TestStepResult(t *testing.T) {
	r := StepResult{Step: "slow", Showed: "few calls", Seconds: 2.4, Calls: 1714}
	if got := r.String(); got != "slow: few calls; 1,714 calls in 2.4 s, none failed" {
		t.Error(got)
	}
	r.Errors = 2
	if got := r.String(); got != "slow: few calls; 1,714 calls in 2.4 s, 2 failed" {
		t.Error(got)
	}
}

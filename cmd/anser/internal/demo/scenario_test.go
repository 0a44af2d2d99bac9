package demo

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
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

// A step concerns another service when the script is repeated.
func TestTurnMovesOn(t *testing.T) {
	for n := range script {
		if turn(n)/instancesOfService == turn(n+len(script))/instancesOfService {
			t.Errorf("step %q is about the same service twice in a row", script[n].name)
		}
	}
}

func TestFits(t *testing.T) {
	d := &demo{o: Options{Every: time.Second}}
	long := step{takes: time.Hour}
	if !d.fits(t.Context(), long) {
		t.Error("a long step does not fit where there is no end")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if d.fits(ctx, long) || !d.fits(ctx, step{takes: time.Second}) {
		t.Error("a minute is enough for an hour, or not for a second")
	}
}

// Steps that do not end in time are skipped, which is reported once.
func TestNext(t *testing.T) {
	d := &demo{o: Options{Every: time.Second}, events: make(chan Event, 16)}
	r := round{steps: []step{{name: "short"}, {name: "long", takes: time.Hour}}, named: make(map[string]bool)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, want := range []int{0, 2, 4} {
		if s, n, ok := d.next(ctx, &r); s.name != "short" || n != want || !ok {
			t.Errorf("%q is number %d, %v", s.name, n, ok)
		}
	}
	if e := <-d.events; e.Kind != "skipped" || !strings.HasPrefix(e.Text, "long: ") || len(d.events) > 0 {
		t.Errorf("%+v, and %d more", e, len(d.events))
	}
	r.steps = r.steps[1:]
	if s, _, ok := d.next(ctx, &r); ok {
		t.Errorf("step %q takes too long", s.name)
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

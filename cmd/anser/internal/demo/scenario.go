package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

// step is one part of the script. It is announced when it begins and when it ends.
type step struct {
	name string // one word: "kill"
	what string // what happens, in a few words
	// run does it to the instance, undoes it, and returns what there was to see. It ends early when ctx is done.
	run func(d *demo, ctx context.Context, in *instance) (showed string, err error)
}

// script is the steps in their order. They go round, and each time another instance has its turn.
var script = []step{
	{"kill", "SIGKILL, and its calls are sent again elsewhere", (*demo).stepKill},
	{"restart", "SIGTERM: it drains, and another takes its place", (*demo).stepRestart},
	{"slow", "answers " + table.Duration(slowBy) + " late, and balancing leaves it alone", (*demo).stepSlow},
	{"outage", "the registry goes away, and calls go on with the instances that are known", (*demo).stepOutage},
}

// Steps are the names of all steps, in the order in which they are performed.
func Steps() []string {
	var names []string
	for _, s := range script {
		names = append(names, s.name)
	}
	return names
}

// CheckSteps says which of the names is no step, or nil.
func CheckSteps(names []string) error {
	for _, n := range names {
		if !slices.Contains(Steps(), n) {
			return fmt.Errorf("there is no step %q: use some of %s", n, strings.Join(Steps(), ", "))
		}
	}
	return nil
}

// chosen returns the steps that are to be performed, in the order of the script.
func (o Options) chosen() []step {
	if len(o.Steps) == 0 {
		return script
	}
	return slices.DeleteFunc(slices.Clone(script), func(s step) bool { return !slices.Contains(o.Steps, s.name) })
}

// StepResult is what came of a step. Its JSON is part of the output of "anser demo --json".
type StepResult struct {
	Step     string  `json:"step"`
	Instance string  `json:"instance,omitempty"` // "" where it is about no single one
	At       float64 `json:"at_s"`               // when it began, since there is traffic
	Seconds  float64 `json:"seconds"`
	Calls    int64   `json:"calls"` // that succeeded meanwhile
	Errors   int64   `json:"errors"`
	Showed   string  `json:"showed"`
}

// String returns the result in a line.
func (r StepResult) String() string {
	failed := "none failed"
	if r.Errors > 0 {
		failed = table.Count(r.Errors) + " failed"
	}
	return fmt.Sprintf("%s: %s; %s calls in %.1f s, %s", r.Step, r.Showed, table.Count(r.Calls), r.Seconds, failed)
}

// play performs the steps until ctx is done; what it has begun it finishes, unless hard is done too. A step
// begins while all instances are up.
func (d *demo) play(ctx, hard context.Context) error {
	if d.o.Every <= 0 {
		return nil
	}
	tick := time.NewTicker(d.o.Every)
	defer tick.Stop()
	steps := d.o.chosen()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := d.fleet.waitUp(ctx, d.fleet.instances...)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = d.performStep(hard, steps[n%len(steps)], d.fleet.instances[turn(n)])
		}
		if hard.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// turn goes round the services and their instances.
func turn(n int) int {
	return n%len(services)*instancesOfService + n/len(services)%instancesOfService
}

package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/child"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

// step is one part of the script. It is announced when it begins and when it ends.
type step struct {
	name string // one word: "kill"
	what string // what happens, in a few words
	// run performs the step on the instance, reverts it, and returns the observed effect. It ends
	// early when ctx is done.
	run func(d *demo, ctx context.Context, in *instance) (showed string, err error)
	// about names the instance of the step, given the next one in turn; "" if there is none.
	about func(in *instance) string
	takes time.Duration // minimum duration, if it is long
}

func whoseTurn(in *instance) string { return in.id }

func canaryOf(in *instance) string { return canaryID(in.service) }

func nobody(*instance) string { return "" }

// script lists the steps in order. They are repeated, each time with another instance.
var script = []step{
	{"kill", "SIGKILL, and its calls are retried elsewhere", (*demo).stepKill, whoseTurn, 0},
	{"restart", "SIGTERM: it drains, and another takes its place", (*demo).stepRestart, whoseTurn, 0},
	{"canary", fmt.Sprintf("appears as version %s, and rules send it %d %% of the calls", canaryVersion, canaryPercent), (*demo).stepCanary, canaryOf, 2 * time.Second},
	{"slow", "answers " + table.Duration(slowBy) + " late, and balancing avoids it", (*demo).stepSlow, whoseTurn, 0},
	{"freeze", "is paused (SIGSTOP), is ejected, and comes back", (*demo).stepFreeze, whoseTurn, 6 * time.Second},
	{"outage", "the registry goes away, and calls continue with the known instances", (*demo).stepOutage, nobody, 0},
}

func init() {
	if !child.CanPause {
		script = slices.DeleteFunc(script, func(s step) bool { return s.name == "freeze" })
	}
}

// Steps returns the names of all steps, in order.
func Steps() []string {
	var names []string
	for _, s := range script {
		names = append(names, s.name)
	}
	return names
}

// CheckSteps returns an error if a name is not a step.
func CheckSteps(names []string) error {
	for _, n := range names {
		if !slices.Contains(Steps(), n) {
			return fmt.Errorf("there is no step %q: use some of %s", n, strings.Join(Steps(), ", "))
		}
	}
	return nil
}

// chosen returns the chosen steps, in the order of the script.
func (o Options) chosen() []step {
	if len(o.Steps) == 0 {
		return script
	}
	return slices.DeleteFunc(slices.Clone(script), func(s step) bool { return !slices.Contains(o.Steps, s.name) })
}

// StepResult is the result of a step. Its JSON is part of the output of "anser demo --json".
type StepResult struct {
	Step     string  `json:"step"`
	Instance string  `json:"instance,omitempty"` // "" if it concerns no single one
	At       float64 `json:"at_s"`               // when it began, since the start of the traffic
	Seconds  float64 `json:"seconds"`
	Calls    int64   `json:"calls"` // successful calls meanwhile
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

// play performs the steps until ctx is done; it completes a step that it has begun, unless hard is
// done, too. A step begins while all instances are up.
func (d *demo) play(ctx, hard context.Context) error {
	if d.o.Every <= 0 {
		return nil
	}
	tick := time.NewTicker(d.o.Every)
	defer tick.Stop()
	r := round{steps: d.o.chosen(), named: make(map[string]bool)}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s, n, ok := d.next(ctx, &r)
		if !ok {
			return nil
		}
		err := d.fleet.waitUp(ctx, d.fleet.instances...)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = d.performStep(hard, s, d.fleet.instances[turn(n)])
		}
		if hard.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// round is the position in the script.
type round struct {
	steps []step
	n     int             // steps so far, including skipped ones
	named map[string]bool // steps that were performed, or reported as skipped
}

// next returns the next step that ends before the demo does, and its number, or false if there is
// none.
func (d *demo) next(ctx context.Context, r *round) (s step, n int, ok bool) {
	for range r.steps {
		n = r.n
		s = r.steps[n%len(r.steps)]
		r.n++
		fits := d.fits(ctx, s)
		if !fits && !r.named[s.name] {
			d.tell(Event{"skipped", "", fmt.Sprintf("%s: it takes about %s, and the demo ends before", s.name, table.Duration(s.takes))})
		}
		r.named[s.name] = true
		if fits {
			return s, n, true
		}
	}
	return step{}, 0, false
}

// fits reports whether there is enough time for a step.
func (d *demo) fits(ctx context.Context, s step) bool {
	late, ok := ctx.Deadline()
	return !ok || time.Until(late)+d.o.Every/2 >= s.takes
}

// turn cycles through the services and their instances. When the script is repeated it moves on to
// another service, so that a step does not always concern the same one.
func turn(n int) int {
	return (n+n/len(script))%len(services)*instancesOfService + n/len(services)%instancesOfService
}

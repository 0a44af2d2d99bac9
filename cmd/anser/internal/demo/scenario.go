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
	// run does it to the instance, undoes it, and returns what there was to see. It ends early when ctx is done.
	run func(d *demo, ctx context.Context, in *instance) (showed string, err error)
	// about names the instance that the step is about, given whose turn it is; "" if it is about none.
	about func(in *instance) string
	takes time.Duration // at least, where that is long
}

func whoseTurn(in *instance) string { return in.id }

func canaryOf(in *instance) string { return canaryID(in.service) }

func nobody(*instance) string { return "" }

// script is the steps in their order. They go round, and each time another instance has its turn.
var script = []step{
	{"kill", "SIGKILL, and its calls are sent again elsewhere", (*demo).stepKill, whoseTurn, 0},
	{"restart", "SIGTERM: it drains, and another takes its place", (*demo).stepRestart, whoseTurn, 0},
	{"canary", fmt.Sprintf("appears as version %s, and rules send it %d %% of the calls", canaryVersion, canaryPercent), (*demo).stepCanary, canaryOf, 2 * time.Second},
	{"slow", "answers " + table.Duration(slowBy) + " late, and balancing leaves it alone", (*demo).stepSlow, whoseTurn, 0},
	{"freeze", "stands still (SIGSTOP), is ejected, and comes back", (*demo).stepFreeze, whoseTurn, 6 * time.Second},
	{"outage", "the registry goes away, and calls go on with the instances that are known", (*demo).stepOutage, nobody, 0},
}

func init() {
	if !child.CanPause {
		script = slices.DeleteFunc(script, func(s step) bool { return s.name == "freeze" })
	}
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

// round is how far the script is.
type round struct {
	steps []step
	n     int             // steps so far, with those that were left out
	named map[string]bool // steps that were performed, or of which was told that they are left out
}

// next returns the next step that ends before the demo does, and its number, or false if there is none any more.
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

// fits reports whether there is time left for a step.
func (d *demo) fits(ctx context.Context, s step) bool {
	late, ok := ctx.Deadline()
	return !ok || time.Until(late)+d.o.Every/2 >= s.takes
}

// turn goes round the services and their instances. When the script begins again it goes on with another service, so
// that a step is not always about the same one.
func turn(n int) int {
	return (n+n/len(script))%len(services)*instancesOfService + n/len(services)%instancesOfService
}

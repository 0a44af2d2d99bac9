package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/anser-rpc/anser/arena/internal/build"
	"github.com/anser-rpc/anser/arena/internal/hosts"
	"github.com/anser-rpc/anser/arena/internal/measure"
	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/progress"
	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/internal/table"
	"github.com/anser-rpc/anser/arena/result"
)

// Disturbance is the share of the machine from which other processes make a round worth repeating.
const Disturbance = 0.05

// Runner carries out a plan.
type Runner struct {
	Builder  *build.Builder
	Document *result.Document // rounds that it has already are not measured again
	Progress progress.Progress
	// Save is called with the document after every measurement.
	Save func() error
	// Repeat measures a disturbed round a second time.
	Repeat bool
	// Patient measures for longer if no call ended in a short measurement, as on a machine that is
	// paused.
	Patient bool
	// Syscalls counts the system calls of every kind.
	Syscalls bool
	Grace    time.Duration
	// Measure makes a measurement; measure.Run when nil.
	Measure func(ctx context.Context, job *measure.Job) (result.Round, error)
}

// Build builds the programs of a plan's peers. Programs that fail to build are removed from the
// plan, and their errors are returned together.
func (r *Runner) Build(ctx context.Context, plan *Plan) error {
	var broken []error
	for _, f := range plan.Folders() {
		r.Progress.Begin("build " + f.Name)
		began := time.Now()
		built, err := r.Builder.Build(ctx, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var command *build.Error
		switch {
		case errors.As(err, &command):
			r.Progress.Note("%v\n%s", err, command.Said)
			plan.WithoutFolder(f, "does not build: "+command.Err.Error())
			broken = append(broken, err)
		case err != nil:
			return err
		case built:
			r.Progress.Note("built %s in %.1f s", f.Name, time.Since(began).Seconds())
		}
	}
	return errors.Join(broken...)
}

// Run measures what the plan says and the document does not have yet.
func (r *Runner) Run(ctx context.Context, plan *Plan) error {
	if plan.Hosts() {
		made, err := hosts.Up(ctx)
		if err != nil {
			return err
		}
		if made {
			defer func() {
				if err := hosts.Down(context.WithoutCancel(ctx)); err != nil {
					r.Progress.Note("the two hosts could not be removed: %v", err)
				}
			}()
		}
	}
	for i := range plan.Steps {
		if err := r.step(ctx, &plan.Steps[i], plan.Steps[:i]); err != nil {
			return err
		}
		r.Progress.Step()
	}
	return nil
}

func (r *Runner) step(ctx context.Context, s *Step, before []Step) error {
	if s.Trial {
		return r.trial(ctx, s)
	}
	workload, shape := s.Line.WorkloadName(), r.chosen(s)
	if s.Line.RateShare > 0 {
		peak := r.peak(s, before)
		if peak == 0 {
			return r.withoutPeak(s, shape)
		}
		shape.Rate = roughly(peak * s.Line.RateShare)
	}
	what := s.Peer.Name + ": " + suite.Describe(workload, shape)
	row := r.find(s.Peer, workload, shape)
	job := r.job(s, workload, shape)
	if row == nil || len(row.Rounds) <= s.Round {
		r.Progress.Begin(what)
		round, err := r.measure(ctx, job)
		if err != nil {
			return err
		}
		row = r.row(s.Peer, workload, shape) // not before: an interrupted run has no empty rows
		add(row, round)
		r.note(fmt.Sprintf("%s, round %d of %d", what, s.Round+1, s.Line.Rounds), &round)
	}
	r.mark(s, row, before)
	if r.Syscalls && s.Last && row.Valid && row.ClientSyscalls == nil {
		r.Progress.Begin(what + ", under strace")
		if err := measure.AddSyscalls(ctx, job, &row.Figures); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			r.Progress.Note("%s: cannot count its system calls: %v", what, err)
		}
	}
	return r.Save()
}

// withoutPeak leaves out a step whose rate is a share of a peak that was not measured.
func (r *Runner) withoutPeak(s *Step, shape result.Shape) error {
	why := suite.Describe(s.Line.WorkloadName(), shape) + ": no peak of it was measured"
	r.Progress.Note("%s: not run: %s", s.Peer.Name, why)
	if s.Round == 0 {
		r.Document.NotRun = append(r.Document.NotRun, result.NotRun{Peer: s.Peer.Name, Reason: why})
	}
	return r.Save()
}

func (r *Runner) job(s *Step, workload string, shape result.Shape) *measure.Job {
	return &measure.Job{
		Server: r.Builder.Expand(s.Peer.Folder, s.Peer.Server), Client: r.Builder.Expand(s.Peer.Folder, s.Peer.Client),
		Workload: workload, Shape: shape, Warmup: s.Warmup, Grace: r.Grace,
	}
}

// row returns the row of the document that a step belongs to, and makes it where there is none.
func (r *Runner) row(p *peer.Peer, workload string, shape result.Shape) *result.Row {
	if row := r.find(p, workload, shape); row != nil {
		return row
	}
	r.Document.Rows = append(r.Document.Rows, *newRow(p, workload, shape))
	return &r.Document.Rows[len(r.Document.Rows)-1]
}

func (r *Runner) find(p *peer.Peer, workload string, shape result.Shape) *result.Row {
	for i := range r.Document.Rows {
		row := &r.Document.Rows[i]
		if row.Peer == p.Name && row.Workload == workload && row.Shape == shape && row.Published == "" {
			return row
		}
	}
	return nil
}

// peak returns the calls/s that the peer of a step has reached in the step's own shape in a closed
// loop, in the lines before its own: with those of later ones, a run that is resumed would find
// another peak.
func (r *Runner) peak(s *Step, before []Step) float64 {
	workload, own := s.Line.WorkloadName(), suite.Closed(r.chosen(s))
	for i := range before {
		b := &before[i]
		if b.Trial || b.Peer != s.Peer || b.Line == s.Line || b.Line.WorkloadName() != workload || b.Line.RateShare > 0 {
			continue
		}
		shape := r.chosen(b)
		if shape.Rate > 0 || suite.Closed(shape) != own {
			continue
		}
		if row := r.find(b.Peer, workload, shape); row != nil && row.Valid {
			return row.CallsPerSecond
		}
	}
	return 0
}

// roughly keeps two digits.
func roughly(f float64) float64 {
	if f <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(f))-1)
	return math.Round(f/unit) * unit
}

// measure measures once, and once more when other processes took too much of the machine. It
// returns the better of the two.
func (r *Runner) measure(ctx context.Context, job *measure.Job) (result.Round, error) {
	once := r.Measure
	if once == nil {
		once = measure.Run
	}
	round, err := once(ctx, job)
	for longer := *job; r.Patient && err == nil && empty(&round) && longer.Shape.Seconds < muchLonger; {
		longer.Shape.Seconds *= 10
		round, err = once(ctx, &longer)
	}
	if err != nil || !r.Repeat || round.OtherShare <= Disturbance || !measure.Valid(&round) {
		return round, err
	}
	again, err := once(ctx, job)
	if err != nil {
		return again, err
	}
	// A repetition that fails says something about the peer, and must not disappear.
	if !measure.Valid(&again) || again.OtherShare <= Disturbance {
		return again, nil
	}
	again.Disturbed, round.Disturbed = true, true
	if again.OtherShare < round.OtherShare {
		return again, nil
	}
	return round, nil
}

// muchLonger is how many seconds are not made longer any more.
const muchLonger = 20

// empty reports whether a round has nothing in it that was right or wrong.
func empty(r *result.Round) bool { return r.Calls+r.Errors+r.Wrong == 0 && r.FirstError == "" }

// note says in a line what a round gave.
func (r *Runner) note(what string, round *result.Round) {
	text := what + ": "
	switch {
	case round.Calls == 0 && round.FirstError != "":
		text += "INVALID: " + round.FirstError
	case round.Calls == 0:
		text += "INVALID: no call ended inside the measurement"
	case round.Wrong > 0:
		text += fmt.Sprintf("INVALID: %s wrong replies", table.Count(float64(round.Wrong)))
	default:
		text += fmt.Sprintf("%s calls/s, CPU %s, p50 %s, p99 %s", table.Count(round.CallsPerSecond),
			table.Micros(round.CPUUS), table.Micros(round.P50US), table.Micros(round.P99US))
		if round.Errors > 0 {
			text += fmt.Sprintf(", %s errors", table.Count(float64(round.Errors)))
		}
		if round.FirstError != "" {
			text += ": " + round.FirstError
		}
		if round.Disturbed {
			text += fmt.Sprintf(", disturbed: other processes took %.0f %% of the machine", 100*round.OtherShare)
		}
	}
	r.Progress.Note("%s", text)
}

// Faults says what a strict run does not forgive: rounds with errors, wrong replies or a breach of
// the contract.
func Faults(doc *result.Document) []string {
	var faults []string
	for i := range doc.Rows {
		row := &doc.Rows[i]
		for j := range row.Rounds {
			round := &row.Rounds[j]
			if measure.Valid(round) && round.Errors == 0 && round.FirstError == "" {
				continue
			}
			why := round.FirstError
			if round.Wrong > 0 {
				why = fmt.Sprintf("%d wrong replies", round.Wrong)
			} else if why == "" {
				why = "no call ended inside the measurement"
			}
			faults = append(faults, fmt.Sprintf("%s: %s: %s", row.Peer, suite.Describe(row.Workload, row.Shape), why))
		}
	}
	return faults
}

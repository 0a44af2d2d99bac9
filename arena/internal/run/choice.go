package run

import (
	"context"

	"github.com/anser-rpc/anser/arena/internal/measure"
	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/result"
)

// trial measures a shape for a short time, unless the document has this trial already.
func (r *Runner) trial(ctx context.Context, s *Step) error {
	workload, shape := s.Line.WorkloadName(), s.Shapes[0]
	if _, n := r.tried(s.Peer.Name, workload, shape); n > s.Round {
		return nil
	}
	what := s.Peer.Name + ": " + suite.Describe(workload, shape) + ", trial"
	r.Progress.Begin(what)
	round, err := r.measure(ctx, r.job(s, workload, shape))
	if err != nil {
		return err
	}
	r.Document.Trials = append(r.Document.Trials, result.Trial{
		Peer: s.Peer.Name, Workload: workload, Shape: shape, Valid: measure.Valid(&round), Round: round,
	})
	r.note(what, &round)
	return r.Save()
}

// tried returns the most calls/s of the trials of a shape, and how many there are. A shape with an
// invalid trial has none: one that fails now and then is not a peer's best.
func (r *Runner) tried(who, workload string, shape result.Shape) (most float64, n int) {
	closed, valid := suite.Closed(shape), true
	for i := range r.Document.Trials {
		t := &r.Document.Trials[i]
		if t.Peer == who && t.Workload == workload && suite.Closed(t.Shape) == closed {
			most, n, valid = max(most, t.CallsPerSecond), n+1, valid && t.Valid
		}
	}
	if !valid {
		most = 0
	}
	return most, n
}

// chosen returns the shape that a step is measured in: the one with the most calls/s in its
// trials. Of equal ones the first counts, which has the fewest connections. Where no trial was
// valid it is the first, so that the document shows what fails.
func (r *Runner) chosen(s *Step) result.Shape {
	best, most := s.Shapes[0], 0.0
	if len(s.Shapes) == 1 {
		return best
	}
	for _, shape := range s.Shapes {
		if reached, _ := r.tried(s.Peer.Name, s.Line.WorkloadName(), shape); reached > most {
			best, most = shape, reached
		}
	}
	return best
}

// mark marks the row of a step as the peer's best, where the line looks for it.
func (r *Runner) mark(s *Step, row *result.Row, before []Step) {
	switch {
	case !s.Line.Chooses():
	case s.Line.Conns == suite.BestConns:
		row.Best = true
	case s.Last:
		r.markAll(s, before)
	}
}

// markAll marks the best of the rows of a line that measures all shapes, when the last of its
// steps was measured. In an open loop every shape answers what is offered, so that the closed loop
// decides there.
func (r *Runner) markAll(s *Step, before []Step) {
	workload := s.Line.WorkloadName()
	var rows []*result.Row
	for i := range r.Document.Rows {
		row := &r.Document.Rows[i]
		same := row.Peer == s.Peer.Name && row.Workload == workload && row.Published == "" && row.Shape.Share == s.Line.RateShare
		if same && (row.Shape.Share > 0 || row.Shape.Rate == s.Line.Rate) && suite.Load(row.Shape) == suite.Load(s.Shapes[0]) &&
			row.Shape.Seconds == s.Shapes[0].Seconds && row.Shape.Calls == s.Shapes[0].Calls {
			rows = append(rows, row)
		}
	}
	score := func(row *result.Row) float64 { return row.CallsPerSecond }
	if s.Line.Rate > 0 || s.Line.RateShare > 0 {
		score = func(row *result.Row) float64 { return r.closedPeak(s, row, before) }
	}
	var best *result.Row
	most, valid := 0.0, false
	for _, row := range rows {
		row.Best = false
		valid = valid || row.Valid
		if v := score(row); row.Valid && v > most {
			best, most = row, v
		}
	}
	switch {
	case best != nil:
		best.Best = true
	case !valid && len(rows) > 0: // a peer that fails in every shape is shown, too
		rows[0].Best = true
	}
}

// closedPeak returns the calls/s of a row's shape in a closed loop, 0 where it was not measured.
func (r *Runner) closedPeak(s *Step, row *result.Row, before []Step) float64 {
	like := *s
	like.Shapes = []result.Shape{row.Shape}
	return r.peak(&like, before)
}

package measure

import (
	"context"
	"errors"
	"time"

	"github.com/anser-rpc/anser/arena/internal/proc"
	"github.com/anser-rpc/anser/arena/result"
)

// Failing is the share of failed calls beyond which a round says nothing of speed: failing fast is
// cheap.
const Failing = 0.01

// Valid reports whether a round may be compared with others: it has right replies, no wrong ones,
// and not more than one call in a hundred failed.
func Valid(r *result.Round) bool {
	return r.Calls > 0 && r.Wrong == 0 && float64(r.Errors) <= Failing*float64(r.Calls+r.Errors)
}

// Run measures once. What a peer does wrong is in the round; an error ends the run.
func Run(ctx context.Context, j *Job) (result.Round, error) {
	round := result.Round{Began: time.Now().UTC().Truncate(time.Millisecond)}
	err := run(ctx, j, &round)
	var peers *failure
	switch {
	case ctx.Err() != nil:
		return round, ctx.Err()
	case errors.As(err, &peers):
		round.FirstError = err.Error()
		return round, nil
	}
	return round, err
}

func run(ctx context.Context, j *Job, round *result.Round) error {
	s := &session{job: j}
	defer s.close()
	if err := s.startServers(ctx); err != nil {
		return err
	}
	var err error
	if round.Load, err = proc.Load(); err != nil {
		return err
	}
	roots := make([]int, len(s.servers))
	for i, c := range s.servers {
		roots[i] = c.PID()
	}
	sampler := proc.Start(roots, roots[0], j.iface())
	var texts [][]byte
	began := time.Now()
	if err = s.startClients(); err == nil {
		for _, c := range s.clients {
			sampler.AddStarted(began, c.PID())
		}
		texts, err = s.lines(ctx, sampler)
	}
	record := sampler.Stop()
	if err != nil {
		return err
	}
	lines := make([]*line, len(texts))
	for i, text := range texts {
		if lines[i], err = parseLine(text); err != nil {
			return err
		}
		if round.FirstError == "" {
			round.FirstError = lines[i].FirstError
		}
	}
	figures, others, err := figures(j, lines, record)
	if err != nil {
		return err
	}
	round.Figures, round.OtherShare = figures, others
	return s.end()
}

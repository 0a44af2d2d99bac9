// Package run measures peers in turn and writes what it finds into a document.
package run

import (
	"fmt"
	"time"

	"github.com/anser-rpc/anser/arena/internal/need"
	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/suite"
	"github.com/anser-rpc/anser/arena/result"
)

// Step is one measurement of a plan.
type Step struct {
	Peer *peer.Peer
	Line *suite.Line
	// Shapes are the candidates for measuring the peer. If there are several, the trials of the
	// earlier steps decide. The rate is still unknown if the line has a share.
	Shapes []result.Shape
	Trial  bool // a short measurement of the one of Shapes, to choose by
	Warmup float64
	Round  int // from 0
	Last   bool
}

// Plan is what a run measures, in order.
type Plan struct {
	Steps  []Step
	NotRun []result.NotRun
	tried  map[trialKey]bool // the trials that are planned
}

// trialKey is what a trial is of. Lines that differ in what is offered only share their trials.
type trialKey struct {
	peer     string
	workload string
	shape    result.Shape // closed
}

// NewPlan plans a suite. The peers are interleaved: each round measures every one of them, so that
// what the machine does meanwhile hits all.
func NewPlan(s *suite.Suite, peers []*peer.Peer, tools *need.Checker) *Plan {
	p := &Plan{tried: make(map[trialKey]bool)}
	var able []*peer.Peer
	for _, candidate := range peers {
		missing := tools.Missing(candidate.Folder.Needs)
		if len(missing) == 0 {
			able = append(able, candidate)
			continue
		}
		p.leaveOut(candidate, "needs "+list(missing))
	}
	for i := range s.Lines {
		p.line(s, &s.Lines[i], able)
	}
	return p
}

func (p *Plan) leaveOut(who *peer.Peer, reason string) {
	p.NotRun = append(p.NotRun, result.NotRun{Peer: who.Name, Reason: reason})
}

func (p *Plan) line(s *suite.Suite, line *suite.Line, peers []*peer.Peer) {
	l := *line
	if l.Seconds == 0 {
		l.Seconds = s.Seconds
	}
	if l.Rounds == 0 {
		l.Rounds = s.Rounds
	}
	var steps, trials []Step
	for _, candidate := range peers {
		shapes, refusal := l.Shapes(candidate)
		if refusal != "" {
			p.leaveOut(candidate, l.String()+": "+refusal)
			continue
		}
		step := Step{Peer: candidate, Line: &l, Shapes: shapes, Warmup: s.WarmupOf(candidate)}
		if l.Conns != suite.AllConns {
			trials = append(trials, p.trials(s, &step)...)
			steps = append(steps, step)
			continue
		}
		for i := range shapes {
			step.Shapes = shapes[i : i+1]
			steps = append(steps, step)
		}
	}
	for round := range max(s.Trials, 1) {
		for _, step := range trials {
			step.Round = round
			p.Steps = append(p.Steps, step)
		}
	}
	for round := range l.Rounds {
		for _, step := range steps {
			step.Round, step.Last = round, round == l.Rounds-1
			p.Steps = append(p.Steps, step)
		}
	}
}

// trials returns those by which the shape of a step is chosen, unless a line before has planned
// them.
func (p *Plan) trials(s *suite.Suite, step *Step) []Step {
	if len(step.Shapes) < 2 {
		return nil
	}
	var trials []Step
	for _, shape := range step.Shapes {
		shape = suite.Closed(shape)
		key := trialKey{step.Peer.Name, step.Line.WorkloadName(), shape}
		if p.tried[key] {
			continue
		}
		p.tried[key] = true
		shape.Seconds = s.Trial
		trial := *step
		trial.Shapes, trial.Trial = []result.Shape{shape}, true
		trials = append(trials, trial)
	}
	return trials
}

// Folders returns the folders of the peers that are measured, each once.
func (p *Plan) Folders() []*peer.Folder {
	var folders []*peer.Folder
	seen := make(map[*peer.Folder]bool)
	for _, s := range p.Steps {
		if f := s.Peer.Folder; !seen[f] {
			seen[f] = true
			folders = append(folders, f)
		}
	}
	return folders
}

// WithoutFolder leaves out the peers of a folder that does not build.
func (p *Plan) WithoutFolder(f *peer.Folder, reason string) {
	var kept []Step
	for _, s := range p.Steps {
		if s.Peer.Folder != f {
			kept = append(kept, s)
		}
	}
	p.Steps = kept
	for _, who := range f.Peers {
		p.leaveOut(who, reason)
	}
}

// The time that a measurement takes besides warm-up and seconds: to start and to end two programs.
const (
	overhead    = 500 * time.Millisecond
	overheadJVM = 3 * time.Second
)

// guessedPace is what a client that counts its calls may reach. It serves to guess how long it
// takes.
const guessedPace = 50_000

// Lasts guesses how long the plan takes, without builds and repetitions.
func (p *Plan) Lasts() time.Duration {
	var sum time.Duration
	for _, s := range p.Steps {
		seconds := s.Warmup + s.Shapes[0].Seconds
		if calls := s.Shapes[0].Calls; calls > 0 {
			seconds += float64(calls) / guessedPace
		}
		sum += time.Duration(seconds*float64(time.Second)) + overhead
		if s.Peer.Folder.Language == "java" {
			sum += overheadJVM
		}
	}
	return sum
}

// Peers returns how many peers are measured.
func (p *Plan) Peers() int {
	seen := make(map[*peer.Peer]bool)
	for _, s := range p.Steps {
		seen[s.Peer] = true
	}
	return len(seen)
}

// Hosts reports whether the plan needs a second host.
func (p *Plan) Hosts() bool {
	for _, s := range p.Steps {
		if s.Shapes[0].Hosts == 2 {
			return true
		}
	}
	return false
}

// WithoutHosts leaves out what needs a second host.
func (p *Plan) WithoutHosts(reason string) {
	var kept []Step
	for _, s := range p.Steps {
		if s.Shapes[0].Hosts == 2 {
			if s.Round == 0 && !s.Trial {
				p.leaveOut(s.Peer, s.Line.String()+": "+reason)
			}
			continue
		}
		kept = append(kept, s)
	}
	p.Steps = kept
}

func list(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		text := words[0]
		for _, w := range words[1 : n-1] {
			text += ", " + w
		}
		return fmt.Sprintf("%s and %s", text, words[n-1])
	}
}

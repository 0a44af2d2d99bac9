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
	Peer   *peer.Peer
	Line   *suite.Line
	Shape  result.Shape // with the rate still to be found where the line has a share
	Warmup float64
	Round  int // from 0
	Last   bool
}

// Plan is what a run measures, in order.
type Plan struct {
	Steps  []Step
	NotRun []result.NotRun
}

// NewPlan plans a suite. The peers are interleaved: each round measures every one of them, so that what
// the machine does meanwhile hits all.
func NewPlan(s *suite.Suite, peers []*peer.Peer, tools *need.Checker) *Plan {
	p := new(Plan)
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
	shapes := make(map[*peer.Peer]result.Shape)
	var able []*peer.Peer
	for _, candidate := range peers {
		shape, refusal := l.Shape(candidate)
		if refusal != "" {
			p.leaveOut(candidate, l.String()+": "+refusal)
			continue
		}
		shapes[candidate] = shape
		able = append(able, candidate)
	}
	for round := range l.Rounds {
		for _, who := range able {
			p.Steps = append(p.Steps, Step{
				Peer: who, Line: &l, Shape: shapes[who], Warmup: s.WarmupOf(who), Round: round, Last: round == l.Rounds-1,
			})
		}
	}
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

// guessedPace is what a client that counts its calls may reach. It serves to guess how long it takes.
const guessedPace = 50_000

// Lasts guesses how long the plan takes, without builds and repetitions.
func (p *Plan) Lasts() time.Duration {
	var sum time.Duration
	for _, s := range p.Steps {
		seconds := s.Warmup + s.Shape.Seconds
		if s.Shape.Calls > 0 {
			seconds += float64(s.Shape.Calls) / guessedPace
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
		if s.Shape.Hosts == 2 {
			return true
		}
	}
	return false
}

// WithoutHosts leaves out what needs a second host.
func (p *Plan) WithoutHosts(reason string) {
	var kept []Step
	for _, s := range p.Steps {
		if s.Shape.Hosts == 2 {
			if s.Round == 0 {
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

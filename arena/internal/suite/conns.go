package suite

import (
	"fmt"
	"strconv"

	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/result"
)

// Values of the connections of a Line that leave the choice to the peer. All others are a number
// of connections that the callers share, or 0 for a connection for each caller.
const (
	// BestConns are those with which the peer is at its best, as short trials show.
	BestConns = -1
	// AllConns are all that the peer supports, one after another.
	AllConns = -2
	// UsualConns are the shared ones of SharedConns where the peer has them, and otherwise one for
	// each caller, without a trial.
	UsualConns = -3
)

// The numbers of connections that are tried, besides one for each caller.
const (
	SharedConns = 2
	PoolConns   = 16
)

// connsWords are the words for the choices, as --conns takes them.
var connsWords = map[int]string{BestConns: "best", AllConns: "all", UsualConns: "usual"}

// ParseConns reads a number of connections or a word.
func ParseConns(text string) (int, error) {
	for conns, word := range connsWords {
		if text == word {
			return conns, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("--conns %s: use best, all, usual, a number, or 0 for a connection for each caller", text)
	}
	return n, nil
}

// Shapes returns what a peer is asked for, without the rate of a RateShare, or why it cannot be
// asked. The shapes differ in their connections only. There are several where the line leaves the
// choice to the peer; fewer connections come first.
func (l *Line) Shapes(p *peer.Peer) (shapes []result.Shape, refusal string) {
	base := l.whole()
	if l.Calls == 0 {
		base.Seconds = l.Seconds
	}
	for _, option := range l.options(p, &base) {
		shape := base
		shape.Conns = option.conns
		if why := l.refusal(p, &shape, option.way); why != "" {
			if refusal == "" {
				refusal = why
			}
			continue
		}
		shapes = append(shapes, shape)
	}
	if len(shapes) > 0 {
		refusal = ""
	}
	return shapes, refusal
}

// option is a number of connections and what a peer calls them.
type option struct {
	conns int
	way   string
}

// options returns the connections that the line asks a peer for.
func (l *Line) options(p *peer.Peer, s *result.Shape) []option {
	each := option{0, peer.Each}
	switch {
	case l.Fresh:
		return []option{{0, peer.Fresh}}
	case l.Conns == UsualConns && p.Supports(peer.Shared):
		return []option{{max(SharedConns, s.Servers*s.Clients), peer.Shared}}
	case l.Conns == UsualConns || l.Conns == 0:
		return []option{each}
	case l.Conns > 0:
		if !p.Supports(peer.Shared) {
			return []option{{l.Conns, peer.Pool}}
		}
		return []option{{l.Conns, peer.Shared}}
	}
	var options []option
	for _, o := range []option{{SharedConns, peer.Shared}, {PoolConns, peer.Pool}} {
		o.conns = max(o.conns, s.Servers*s.Clients)
		// As many connections as callers, or more, are a connection for each caller.
		enough := o.conns >= s.Callers && (p.Supports(peer.Each) || len(options) > 0)
		if !p.Supports(o.way) || enough || len(options) > 0 && options[0].conns == o.conns {
			continue
		}
		options = append(options, o)
	}
	if p.Supports(peer.Each) || len(options) == 0 {
		options = append(options, each)
	}
	return options
}

// Chooses reports whether the connections with which a peer is at its best are looked for.
func (l *Line) Chooses() bool { return !l.Fresh && (l.Conns == BestConns || l.Conns == AllConns) }

// Closed returns the shape without what is offered and how long it is measured: the closed loop of
// the same load, whose calls/s are the peak of the shape.
func Closed(s result.Shape) result.Shape {
	s.Rate, s.Share, s.Seconds, s.Calls = 0, 0, 0, 0
	return s
}

// Load returns a closed shape without its connections: what several of them are compared under.
func Load(s result.Shape) result.Shape {
	s = Closed(s)
	s.Conns = 0
	return s
}

// DescribeConns names the connections of a shape in a few words.
func DescribeConns(s *result.Shape) string {
	switch {
	case s.Fresh:
		return "a connection for each call"
	case s.Conns == 0:
		return "a connection for each caller"
	}
	return Plural(s.Conns, "connection")
}

// Package suite says what is measured: a line for each workload and shape.
package suite

import (
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/result"
)

// Line is a workload in a shape. Zero values mean the most common settings.
type Line struct {
	Workload string // say when empty
	Callers  int
	Conns    int // a number, 0 for one per caller, or a constant such as BestConns
	Fresh    bool
	Window   int
	Rate     float64
	// RateShare is the share of the shape's own peak that is offered: the calls/s that the peer
	// reached in a line before this one with the same callers, connections and messages, in a
	// closed loop.
	RateShare       float64
	Payload         int // 581 when 0
	SleepUS, WorkUS int
	Servers         int // 1 when 0
	Clients         int // 1 when 0
	Hosts           int // 1 when 0
	Calls           int
	Seconds         float64 // those of the suite when 0
	Rounds          int     // those of the suite when 0
}

// Suite is lines that belong together.
type Suite struct {
	Name    string
	Help    string
	Lines   []Line
	Folder  string // whose peers it is for, when none are chosen; all when empty
	Seconds float64
	Rounds  int
	Warmup  *float64 // seconds; nil: those of each peer, but
	// MostWarmup seconds at the most; 0 is no limit.
	MostWarmup float64
	// Trial is how many seconds a trial of a peer's connections takes, and Trials how many of them
	// each has, 1 when 0. The best of them counts: what disturbs a trial makes it slower, and
	// never faster.
	Trial  float64
	Trials int
	// Syscalls counts the system calls of every kind, in a round more under strace.
	Syscalls bool
	// Strict is for tests: the run fails when a peer does not build or does anything wrong, and is
	// not repeated because other processes were running.
	Strict bool
	// Published are figures of authors, which are printed next to the measured ones.
	Published []result.Row
}

// WarmupOf returns how long a peer is warmed up.
func (s *Suite) WarmupOf(p *peer.Peer) float64 {
	switch {
	case s.Warmup != nil:
		return *s.Warmup
	case s.MostWarmup > 0:
		return min(p.WarmupS, s.MostWarmup)
	}
	return p.WarmupS
}

// Find returns the suite with a name.
func Find(name string) (*Suite, error) {
	var names []string
	for i := range Suites {
		if Suites[i].Name == name {
			return &Suites[i], nil
		}
		names = append(names, Suites[i].Name)
	}
	return nil, fmt.Errorf("there is no suite %q: use %s", name, strings.Join(names, ", "))
}

func (l *Line) refusal(p *peer.Peer, shape *result.Shape, way string) string {
	switch {
	case !p.Offers(l.workload()):
		return "has no workload " + l.workload()
	case !p.Supports(way):
		return fmt.Sprintf("does not support %s", map[string]string{
			peer.Shared: "connections that callers share",
			peer.Pool:   "connections that callers share",
			peer.Each:   "a connection for each caller",
			peer.Fresh:  "a connection for each call",
		}[way])
	case !l.Fresh && shape.Conns == 0 && shape.Servers > shape.Callers:
		return fmt.Sprintf("%s, each with a connection of its own, do not reach %s", Plural(shape.Callers, "caller"), Plural(shape.Servers, "server"))
	case p.MaxConns > 0 && !l.Fresh && conns(shape) > p.MaxConns:
		return fmt.Sprintf("serves %s at a time", Plural(p.MaxConns, "connection"))
	case p.MaxCallsPerConn > 0 && !l.Fresh && callsPerConn(shape) > p.MaxCallsPerConn:
		return fmt.Sprintf("carries %s at a time on a connection", Plural(p.MaxCallsPerConn, "call"))
	case shape.Window > 1 && !p.Window:
		return "has no asynchronous calls for --window"
	case shape.Payload > 0 && !p.Takes(shape.Payload):
		return fmt.Sprintf("does not take payloads of %d bytes", shape.Payload)
	}
	return ""
}

// callsPerConn returns the most calls that are on a connection at a time.
func callsPerConn(s *result.Shape) int {
	n := conns(s)
	return (s.Callers + n - 1) / n * max(s.Window, 1)
}

func conns(s *result.Shape) int {
	if s.Conns == 0 {
		return s.Callers
	}
	return s.Conns
}

func (l *Line) workload() string {
	if l.Workload == "" {
		return peer.Say
	}
	return l.Workload
}

// WorkloadName returns the workload of the line.
func (l *Line) WorkloadName() string { return l.workload() }

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// Check returns an error if a line from the command line is invalid.
func (l *Line) Check() error {
	servers, clients := or(l.Servers, 1), or(l.Clients, 1)
	switch {
	case l.workload() != peer.Say && l.workload() != peer.Add:
		return fmt.Errorf("--workload %s: use say or add", l.Workload)
	case l.Callers < 1:
		return fmt.Errorf("--callers %d: it must be at least 1", l.Callers)
	case l.Callers < clients:
		return fmt.Errorf("--callers %d are fewer than --clients %d: each client needs one", l.Callers, clients)
	case l.Conns < 0 && connsWords[l.Conns] == "":
		return fmt.Errorf("--conns %d: use a number, or 0 for a connection for each caller", l.Conns)
	case !l.Fresh && l.Conns > 0 && l.Conns < max(servers*clients, 1):
		return fmt.Errorf("--conns %d: %d clients and %d servers need at least %d", l.Conns, clients, servers, servers*clients)
	case l.Conns == 0 && servers > l.Callers:
		return fmt.Errorf("--callers %d are fewer than --servers %d: each server needs one", l.Callers, servers)
	case l.Window < 0 || l.Rate < 0 || l.RateShare < 0 || l.SleepUS < 0 || l.WorkUS < 0 || l.Calls < 0:
		return fmt.Errorf("--window, --rate, --sleep-us, --work-us and --calls must not be negative")
	case l.Payload != 0 && l.Payload < 64:
		return fmt.Errorf("--payload %d: 64 is the least", l.Payload)
	case or(l.Hosts, 1) > 2:
		return fmt.Errorf("--hosts %d: use 1 or 2", l.Hosts)
	case l.Calls == 0 && l.Seconds <= 0:
		return fmt.Errorf("--seconds must be more than 0")
	}
	return nil
}

// String describes the line for people.
func (l *Line) String() string {
	shape := l.whole()
	switch {
	case l.Fresh || l.Conns >= 0:
		return Describe(l.workload(), shape)
	case l.Conns == BestConns:
		return DescribeBest(l.workload(), shape)
	}
	return describe(l.workload(), &shape, "")
}

// whole is the shape as it is typed, before a peer makes something of it.
func (l *Line) whole() result.Shape {
	s := result.Shape{
		Callers: l.Callers, Conns: l.Conns, Fresh: l.Fresh, Window: l.Window, Rate: l.Rate, Share: l.RateShare,
		SleepUS: l.SleepUS, WorkUS: l.WorkUS, Servers: or(l.Servers, 1), Clients: or(l.Clients, 1), Hosts: or(l.Hosts, 1),
		Calls: l.Calls,
	}
	if l.workload() == peer.Say {
		s.Payload = or(l.Payload, peer.StandardPayload)
	}
	return s
}

// Describe names a workload and a shape in a few words.
func Describe(workload string, s result.Shape) string {
	return describe(workload, &s, DescribeConns(&s))
}

// DescribeBest names a workload and a shape in which each peer has its own best connections.
func DescribeBest(workload string, s result.Shape) string {
	return describe(workload, &s, "each with its best connections")
}

func describe(workload string, s *result.Shape, conns string) string {
	words := []string{workload, Plural(s.Callers, "caller")}
	if conns != "" {
		words = append(words, conns)
	}
	when := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	when(s.Window > 1, "window %d", s.Window)
	when(s.Share > 0, "%.0f %% of its own peak offered", 100*s.Share)
	when(s.Rate > 0 && s.Share == 0, "%.0f calls/s offered", s.Rate)
	when(s.Payload > 0 && s.Payload != peer.StandardPayload, "%d bytes", s.Payload)
	when(s.SleepUS > 0, "handler sleeps %d µs", s.SleepUS)
	when(s.WorkUS > 0, "handler works %d µs", s.WorkUS)
	when(s.Servers > 1, "%d servers", s.Servers)
	when(s.Clients > 1, "%d client processes", s.Clients)
	when(s.Hosts > 1, "%d hosts", s.Hosts)
	when(s.Calls > 0, "%d calls", s.Calls)
	return strings.Join(words, ", ")
}

// Plural writes a number of things: "1 caller", "2 callers".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

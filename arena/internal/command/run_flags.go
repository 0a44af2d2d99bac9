package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/anser-rpc/anser/arena/internal/peer"
	"github.com/anser-rpc/anser/arena/internal/suite"
)

// runFlags are those of "arena run".
type runFlags struct {
	set *pflag.FlagSet

	peers     string
	suite     string
	workloads []string
	callers   []int
	conns     string
	fresh     bool
	window    int
	rate      string
	payloads  []int
	sleepUS   int
	workUS    int
	servers   int
	clients   int
	hosts     int
	calls     int

	seconds  float64
	trial    float64
	warmup   float64
	rounds   int
	noRepeat bool
	syscalls bool
	timeout  float64

	json   string
	resume string
}

// Defaults of the flags.
const (
	defaultCallers = 100
	defaultSeconds = 5
	defaultRounds  = 3
	defaultTrial   = 1
	defaultTimeout = 30
)

func newRunFlags(set *pflag.FlagSet) *runFlags {
	f := &runFlags{set: set}
	set.StringVar(&f.peers, "peers", "", peersHelp+"; default: all, or the peers of the suite")
	set.StringVar(&f.suite, "suite", "", "run a suite: "+suiteNames())
	set.StringSliceVar(&f.workloads, "workload", []string{peer.Say}, "say, add, or both")
	set.IntSliceVar(&f.callers, "callers", []int{defaultCallers}, "concurrent callers in total over all clients; separate several values with commas")
	set.StringVar(&f.conns, "conns", "best", "number of connections that the callers share, 0: one per caller; best: the fastest number for each peer, found by a short trial; "+
		"all: every number that the peer supports; usual: 2 if the peer can share connections, else one per caller")
	set.BoolVar(&f.fresh, "fresh", false, "open a new connection for each call")
	set.IntVar(&f.window, "window", 0, "calls that each caller keeps in flight, for peers with asynchronous calls")
	set.StringVar(&f.rate, "rate", "0", "calls per second in total, regardless of the server's speed (open loop), or a percentage such as 60% of the peak of each peer with its connections")
	set.IntSliceVar(&f.payloads, "payload", []int{peer.StandardPayload}, "size of the request of say in bytes; separate several values with commas")
	set.IntVar(&f.sleepUS, "sleep-us", 0, "microseconds that the handler sleeps")
	set.IntVar(&f.workUS, "work-us", 0, "microseconds that the handler keeps a core busy")
	set.IntVar(&f.servers, "servers", 1, "server processes")
	set.IntVar(&f.clients, "clients", 1, "client processes")
	set.IntVar(&f.hosts, "hosts", 1, "2: run client and server in separate network namespaces (needs root)")
	set.IntVar(&f.calls, "calls", 0, "measure this number of calls instead of --seconds")
	set.Float64Var(&f.trial, "trial", defaultTrial, "seconds per trial that chooses the number of connections")
	set.Float64Var(&f.seconds, "seconds", defaultSeconds, "seconds per measurement")
	set.Float64Var(&f.warmup, "warmup", 0, "seconds of load before each measurement; default: set by each peer")
	set.IntVar(&f.rounds, "rounds", defaultRounds, "measurements per peer, alternating with the other peers")
	set.BoolVar(&f.noRepeat, "no-repeat", false, "do not repeat rounds that other processes disturbed")
	set.BoolVar(&f.syscalls, "syscalls", false, "count system calls by kind in an additional round under strace")
	set.Float64Var(&f.timeout, "timeout", defaultTimeout, "seconds that a program may take to start, to connect or to exit before it counts as hanging")
	set.StringVar(&f.json, "json", "", "file for the results of the run, written after every measurement; - means standard output, at the end")
	set.StringVar(&f.resume, "resume", "", "file of an interrupted run: continue the run, and write the results to the same file")
	return f
}

func suiteNames() string {
	var names []string
	for i := range suite.Suites {
		names = append(names, suite.Suites[i].Name)
	}
	return strings.Join(names, ", ")
}

// command returns the command line that repeats the run, without where its result goes.
func (f *runFlags) command() []string {
	words := []string{"go", "run", "./arena", "run"}
	f.set.Visit(func(flag *pflag.Flag) {
		if flag.Name == "json" || flag.Name == "resume" {
			return
		}
		value := flag.Value.String()
		if many, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(many.GetSlice(), ",")
		}
		words = append(words, "--"+flag.Name+"="+value)
	})
	return words
}

// parseCommand is the inverse of command.
func parseCommand(words []string) (*runFlags, error) {
	at := slices.Index(words[min(1, len(words)):], "./arena")
	if at < 0 || len(words) < at+3 || words[at+2] != "run" {
		return nil, fmt.Errorf("the file is not a result of arena run: its command is %q", strings.Join(words, " "))
	}
	f := newRunFlags(pflag.NewFlagSet("run", pflag.ContinueOnError))
	if err := f.set.Parse(words[at+3:]); err != nil {
		return nil, fmt.Errorf("the command in the file is unknown to this version of arena: %w", err)
	}
	return f, nil
}

// ofShape are the flags that a suite decides about.
var ofShape = []string{
	"workload", "callers", "fresh", "window", "rate", "payload", "sleep-us", "work-us", "servers", "clients", "hosts", "calls",
}

// plan returns the suite that the flags say.
func (f *runFlags) plan() (*suite.Suite, error) {
	switch {
	case f.rounds < 1:
		return nil, usagef("--rounds %d: it must be at least 1", f.rounds)
	case f.warmup < 0:
		return nil, usagef("--warmup %g: it must not be negative", f.warmup)
	case f.trial <= 0:
		return nil, usagef("--trial %g: it must be more than 0", f.trial)
	case f.timeout <= 0:
		return nil, usagef("--timeout %g: it must be more than 0", f.timeout)
	}
	var s *suite.Suite
	var err error
	if f.suite != "" {
		s, err = f.named()
	} else {
		s, err = f.typed()
	}
	if err != nil {
		return nil, err
	}
	if f.set.Changed("warmup") {
		s.Warmup = &f.warmup
	}
	if f.set.Changed("trial") || s.Trial == 0 {
		s.Trial = f.trial
	}
	return s, nil
}

// named returns a suite of the table, with what may be changed of it.
func (f *runFlags) named() (*suite.Suite, error) {
	found, err := suite.Find(f.suite)
	if err != nil {
		return nil, &usageError{err}
	}
	for _, name := range ofShape {
		if f.set.Changed(name) {
			return nil, usagef("--%s and --suite: the suite decides about it, use one of them", name)
		}
	}
	conns, err := suite.ParseConns(f.conns)
	if err != nil {
		return nil, &usageError{err}
	}
	if conns >= 0 {
		return nil, usagef("--conns %s and --suite: the suite decides about it, use best, all or usual", f.conns)
	}
	s := *found
	s.Lines = slices.Clone(found.Lines)
	for i := range s.Lines {
		if f.set.Changed("conns") && s.Lines[i].Conns < 0 {
			s.Lines[i].Conns = conns
		}
		if f.set.Changed("seconds") {
			s.Lines[i].Seconds = f.seconds
		}
		if f.set.Changed("rounds") {
			s.Lines[i].Rounds = f.rounds
		}
	}
	if f.set.Changed("seconds") && f.seconds <= 0 {
		return nil, usagef("--seconds must be more than 0")
	}
	return &s, nil
}

// typed returns the lines that the flags of the shape make: one for each workload, number of
// callers and payload.
func (f *runFlags) typed() (*suite.Suite, error) {
	rate, share, err := parseRate(f.rate)
	if err != nil {
		return nil, err
	}
	conns, err := suite.ParseConns(f.conns)
	if err != nil {
		return nil, &usageError{err}
	}
	s := &suite.Suite{Seconds: f.seconds, Rounds: f.rounds}
	base := suite.Line{
		Conns: conns, Fresh: f.fresh, Window: f.window, SleepUS: f.sleepUS, WorkUS: f.workUS,
		Servers: f.servers, Clients: f.clients, Hosts: f.hosts, Calls: f.calls, Seconds: f.seconds, Rounds: f.rounds,
	}
	if f.servers < 1 || f.clients < 1 || f.hosts < 1 {
		return nil, usagef("--servers, --clients and --hosts are at least 1")
	}
	for _, workload := range f.workloads {
		payloads := f.payloads
		if workload != peer.Say {
			payloads = []int{0}
		}
		for _, callers := range f.callers {
			for _, payload := range payloads {
				line := base
				line.Workload, line.Callers, line.Payload = workload, callers, payload
				if share > 0 { // its peak comes first
					s.Lines = append(s.Lines, line)
				}
				line.Rate, line.RateShare = rate, share
				s.Lines = append(s.Lines, line)
			}
		}
	}
	for i := range s.Lines {
		if s.Lines[i].Seconds == 0 {
			s.Lines[i].Seconds = f.seconds
		}
		if err := s.Lines[i].Check(); err != nil {
			return nil, &usageError{err}
		}
	}
	return s, nil
}

// parseRate parses calls per second, or a share of the peak.
func parseRate(text string) (rate, share float64, err error) {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n < 0 || n > 1e9 {
		return 0, 0, usagef("--rate %s: use calls per second, or a share such as 60%%", text)
	}
	if percent {
		return 0, n / 100, nil
	}
	return n, 0, nil
}

func (f *runFlags) grace() time.Duration { return time.Duration(f.timeout * float64(time.Second)) }

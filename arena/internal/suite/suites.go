package suite

import (
	"slices"

	"github.com/anser-rpc/anser/arena/internal/peer"
)

// Suites are the values of --suite.
var Suites = []Suite{
	{
		Name:    "full",
		Help:    "everything, with system calls; takes half a day for all peers",
		Seconds: 5, Rounds: 3, Trial: 2, Trials: 2, Syscalls: true,
		Lines: slices.Concat(
			callers(1, 100, 500, 1000, 2000, 5000),
			[]Line{
				{Callers: 100, Conns: BestConns, SleepUS: 1000},
				{Callers: 1000, Conns: BestConns, SleepUS: 10_000},
				{Callers: 100, Conns: BestConns, WorkUS: 100},
				{Callers: 100, Conns: BestConns, Payload: 64},
				{Callers: 100, Conns: BestConns, Payload: 64 << 10},
				{Callers: 16, Conns: BestConns, Payload: 1 << 20},
				{Callers: 100, Conns: BestConns, Rate: 5000},
				{Callers: 100, Conns: BestConns, RateShare: 0.6},
				{Callers: 1000, Conns: BestConns, RateShare: 0.6},
				{Callers: 100, Conns: BestConns, Servers: 2},
				{Callers: 100, Conns: BestConns, Hosts: 2},
			},
			adds,
		),
	},
	{
		Name:    "quick",
		Help:    "the main measurements once; less than an hour for all peers",
		Seconds: 2, Rounds: 1, Trial: 0.5,
		Lines: slices.Concat(
			callers(1, 100, 1000),
			[]Line{{Workload: peer.Add, Callers: 100, Conns: BestConns}},
		),
	},
	{
		Name: "ci",
		Help: "one second per peer with installed tools; fails on any error",
		// A JVM that has just started can need seconds for its first call.
		Seconds: 1, Rounds: 1, MostWarmup: 5, Strict: true,
		Lines: []Line{
			{Callers: 100, Conns: UsualConns},
			{Callers: 1, Conns: UsualConns, Seconds: 0.3},
			{Workload: peer.Add, Callers: 100, Conns: UsualConns, Seconds: 0.3},
		},
	},
	{
		Name: "kiss",
		Help: "the published benchmark of kiss-rpc with 1,000,000 calls, compared with Anser",
		// A window as deep as a thousand is not the bottleneck, and keeps what is in flight
		// bounded; kiss-rpc's own test hands over all calls at once.
		Folder: "anser", Rounds: 3, Published: kissPublished,
		Lines: []Line{
			{Workload: peer.Add, Callers: 1, Conns: 1, Calls: million},
			{Workload: peer.Add, Callers: 1, Conns: 1, Calls: million, Window: kissWindow},
			{Workload: peer.Add, Callers: 1000, Calls: million},
			{Workload: peer.Say, Callers: 1, Conns: 1, Calls: million},
			{Workload: peer.Say, Callers: 1, Conns: 1, Calls: million, Window: kissWindow},
			{Workload: peer.Say, Callers: 1000, Calls: million},
		},
	},
}

// callers returns a line of say for each number of callers.
func callers(counts ...int) []Line {
	var lines []Line
	for _, n := range counts {
		lines = append(lines, Line{Callers: n, Conns: BestConns})
	}
	return lines
}

// adds are the three that comparisons of gRPC and Thrift began with: one connection, a connection
// for each call, and four clients at once, each a process with a connection of its own.
var adds = []Line{
	{Workload: peer.Add, Callers: 1, Conns: 1},
	{Workload: peer.Add, Callers: 1, Fresh: true},
	{Workload: peer.Add, Callers: 4, Clients: 4},
}

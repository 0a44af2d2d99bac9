package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/contention"
	"github.com/anser-rpc/anser/cmd/anser/internal/load"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

// procsReport is the output of --procs with --json.
type procsReport struct {
	Machine   string      `json:"machine"`    // the system and the version of Go
	CPUs      int         `json:"cpus"`       // processors that this process may use: GOMAXPROCS
	InProcess bool        `json:"in_process"` // the server is in this process, and its time in that of the client
	LineTime  float64     `json:"line_ns"`    // that a cache line takes between two processors; 0: not measured
	Steps     []procsStep `json:"steps"`
}

// procsStep is the load with a number of processors.
type procsStep struct {
	Procs      int        `json:"procs"`
	Efficiency float64    `json:"efficiency"` // calls/s for a processor, relative to the first step
	LockWait   float64    `json:"lock_wait_us_per_call"`
	Locks      []lockWait `json:"locks"`
	benchReport
}

// lockWait is the wait for what a function held.
type lockWait struct {
	Function string  `json:"function"`
	PerCall  float64 `json:"wait_us_per_call"`
	Waits    int64   `json:"waits"`
}

// shownLocks is how many locks of a step are reported.
const shownLocks = 8

// parseProcs returns the steps of --procs.
func parseProcs(typed string) (list []int, err error) {
	if typed == "all" {
		most := runtime.GOMAXPROCS(0)
		for n := 1; n < most; n *= 2 {
			list = append(list, n)
		}
		return append(list, most), nil
	}
	for _, word := range strings.Split(typed, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > mostProcs {
			return nil, usagef("--procs %s: use numbers of processors such as 1,2,4, or all", typed)
		}
		list = append(list, n)
	}
	return list, nil
}

const mostProcs = 4096

// benchProcs measures the load with several numbers of processors. Without a target the server is
// in this process.
func benchProcs(ctx context.Context, s streams, f *benchFlags, typed, method string) error {
	list, err := parseProcs(f.procs)
	if err != nil {
		return err
	}
	if f.profiles != "" {
		if err := os.MkdirAll(f.profiles, 0o755); err != nil {
			return err
		}
	}
	most := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(most)
	report := procsReport{
		Machine: fmt.Sprintf("%s/%s, %s", runtime.GOOS, runtime.GOARCH, runtime.Version()),
		CPUs:    most, InProcess: f.serve,
	}
	if n := slices.Max(list); n > 1 {
		runtime.GOMAXPROCS(n)
		report.LineTime = float64(contention.Transfer().Nanoseconds())
	}
	var failed error
	for _, n := range list {
		runtime.GOMAXPROCS(n)
		step, err := benchStep(ctx, f, n, typed, method)
		if step != nil {
			step.Efficiency = 1
			if first := report.Steps; len(first) > 0 && first[0].CallsPerS > 0 {
				step.Efficiency = round(step.CallsPerS / float64(n) / (first[0].CallsPerS / float64(first[0].Procs)))
			}
			report.Steps = append(report.Steps, *step)
		}
		if failed = err; err != nil {
			break
		}
	}
	if len(report.Steps) == 0 {
		return failed
	}
	if f.json {
		err = printJSONLine(s.out, report)
	} else {
		showProcs(s, f, &report)
	}
	return errors.Join(failed, err)
}

// benchStep measures the load with n processors, which are set. It may return a step and an error.
func benchStep(ctx context.Context, f *benchFlags, n int, typed, method string) (step *procsStep, err error) {
	servers := []int(nil)
	if f.serve {
		var end func() error
		if typed, end, err = serveHere(ctx); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
		servers = []int{} // not measured a second time
	}
	o := *f
	if !f.connsSet { // a connection is read by one goroutine on either side
		o.conns = max(f.conns, n)
	}
	step = &procsStep{Procs: n, Locks: []lockWait{}}
	var recording *contention.Recording
	var profiles *profiling
	o.began = func() {
		if f.profiles != "" {
			profiles = beginProfiles(f.profiles, n)
		}
		recording = contention.Start()
	}
	var locks []contention.Lock
	o.ended = func() {
		if recording != nil {
			locks = recording.Stop()
		}
	}
	r, measured, err := measure(ctx, &o, typed, method, servers)
	if profiles != nil {
		err = errors.Join(err, profiles.end())
	}
	if !measured {
		return nil, err
	}
	step.benchReport = r
	calls := float64(max(r.Calls+r.Errors, 1))
	for i, l := range locks {
		us := float64(l.Time.Nanoseconds()) / 1e3 / calls
		step.LockWait += us
		if i < shownLocks {
			step.Locks = append(step.Locks, lockWait{l.Function, roundMore(us), l.Waits})
		}
	}
	step.LockWait = roundMore(step.LockWait)
	return step, err
}

// roundMore keeps a digit more than round.
func roundMore(f float64) float64 { return float64(int64(f*1000+0.5)) / 1000 }

// serveHere starts a server in this process.
func serveHere(ctx context.Context) (address string, end func() error, err error) {
	server := load.NewServer(anser.MaxMessage(64<<20), anser.NoSignals())
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	return l.Addr().String(), func() error {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel() // nothing is called anymore
		return serveUntil(ctx, server, served)
	}, nil
}

// profiling writes profiles of a measurement.
type profiling struct {
	folder string
	procs  int
	cpu    *os.File
	err    error
}

// blockRate is the wait in nanoseconds of which one is recorded on average.
const blockRate = 10_000

func beginProfiles(folder string, procs int) *profiling {
	p := &profiling{folder: folder, procs: procs}
	runtime.SetBlockProfileRate(blockRate)
	if p.cpu, p.err = os.Create(p.path("cpu")); p.err == nil {
		p.err = pprof.StartCPUProfile(p.cpu)
	}
	return p
}

func (p *profiling) path(kind string) string {
	return filepath.Join(p.folder, fmt.Sprintf("%s-%d.pprof", kind, p.procs))
}

// end writes the files.
func (p *profiling) end() error {
	runtime.SetBlockProfileRate(0)
	if p.cpu != nil {
		pprof.StopCPUProfile()
		p.err = errors.Join(p.err, p.cpu.Close())
	}
	for _, kind := range []string{"mutex", "block"} {
		file, err := os.Create(p.path(kind))
		if err == nil {
			err = errors.Join(pprof.Lookup(kind).WriteTo(file, 0), file.Close())
		}
		p.err = errors.Join(p.err, err)
	}
	return p.err
}

func showProcs(s streams, f *benchFlags, r *procsReport) {
	first := r.Steps[0]
	where := "at " + first.Target
	if r.InProcess {
		where = "of a server in this process"
	}
	out := screen.New(s.out)
	out.Print(
		fmt.Sprintf("%s %s, %s, %s", first.Method, where, plural(r.CPUs, "processor"), r.Machine),
		fmt.Sprintf("%s, requests of %s bytes, %s, %.1f s each", plural(first.Callers, "caller"), table.Count(int64(first.RequestBytes)), f.loop(), f.seconds),
		"")
	t := table.Table{Columns: []table.Column{
		{Title: "PROCS", Right: true},
		{Title: "CONNS", Right: true},
		{Title: "CALLS/S", Right: true},
		{Title: "EFFICIENCY", Right: true},
		{Title: "CPU A CALL", Right: true},
		{Title: "LOCKS A CALL", Right: true},
		{Title: "P50", Right: true},
		{Title: "P99", Right: true},
		{Title: "ERRORS", Right: true},
	}}
	for i := range r.Steps {
		st := &r.Steps[i]
		t.Add(strconv.Itoa(st.Procs), strconv.Itoa(st.Conns), table.Rate(st.CallsPerS), fmt.Sprintf("%.0f %%", 100*st.Efficiency),
			cpuText(st.ClientCPU, st.ServerCPU), microsText(st.LockWait), microsText(st.P50), microsText(st.P99), table.Count(st.Errors))
	}
	width, _ := out.Size()
	lines := append(t.Lines(width), "")
	last := &r.Steps[len(r.Steps)-1]
	if len(last.Locks) > 0 {
		lines = append(lines, fmt.Sprintf("waits for locks a call with %s, by the function that held one:", plural(last.Procs, "processor")))
		for _, l := range last.Locks {
			lines = append(lines, fmt.Sprintf("%9s  %s", microsText(l.PerCall), l.Function))
		}
	}
	if r.LineTime > 0 {
		lines = append(lines, fmt.Sprintf("a cache line takes %.0f ns from one processor to another", r.LineTime))
	}
	if last.Procs > r.CPUs {
		lines = append(lines, fair.Render(fmt.Sprintf("there are only %s", plural(r.CPUs, "processor"))))
	}
	out.Print(lines...)
}

// cpuText is the processor time of both sides, or of one if the server is in this process.
func cpuText(client, server *float64) string {
	switch {
	case client == nil:
		return "unknown"
	case server == nil:
		return microsText(*client)
	}
	return microsText(*client) + " + " + microsText(*server)
}

// microsText writes microseconds.
func microsText(us float64) string { return table.Duration(time.Duration(us * 1e3)) }

package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/child"
	"github.com/anser-rpc/anser/cmd/anser/internal/cputime"
	"github.com/anser-rpc/anser/cmd/anser/internal/load"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

// benchFlags are the flags of "anser bench".
type benchFlags struct {
	registry sourceFlags
	tls      tlsFlags
	follow   followFlags
	serve    bool
	callers  int
	conns    int
	rate     float64
	payload  int
	data     string
	seconds  float64
	warmup   float64
	timeout  time.Duration
	compress string
	procs    string
	profiles string
	json     bool

	connsSet     bool
	began, ended func() // when the measurement begins and ends, or nil
}

func newBench(s streams) *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench TARGET METHOD",
		Short: "Put a server under load and measure it",
		Long: strings.TrimSpace(`
Put a server under load and measure it. Each caller makes its next call when the last one is over
(closed loop), or with --rate calls become due at that rate, however slow the server is, and latency
counts from the moment a call was due (open loop).

Without --data or --payload the request is {}; for Hello.Say it is the protobuf message of 581 bytes
that is common in comparisons of RPC frameworks, and the replies are checked. With --payload the method must
accept bytes, as Echo.Bytes of "anser bench serve" does.

CPU is the processor time per call: of this process, and of the server if it runs on this machine,
including whatever else it does meanwhile.

With --procs the same load runs with several numbers of processors (GOMAXPROCS) in turn, such as
1,2,4, or with all: 1, 2, 4 and so on up to those of the machine. With --serve the server is then in
this process, and shares the processors with the callers. There are as many connections as
processors, unless --conns is set. EFFICIENCY is calls/s for a processor, relative to the first
step; LOCKS A CALL is how long goroutines waited for locks, and the functions that held the locks
are listed. The time that a cache line takes between two processors is measured before the load. With --profiles, files for "go tool pprof" are written for each step: of the processors, of
waits for locks, and of all waits; the waits of the steps before are in the files too.

One call is made before the load, to check the target and the method.

Exit codes: 0 no call failed; 1 one did under load; 2 wrong use; 3 to 6 when that first call failed,
as those of "anser call".`),
		Example: strings.Trim(`
  anser bench --serve --callers 100                          # a server of its own, Hello.Say
  anser bench 127.0.0.1:8972 Hello.Say --callers 1000        # against "anser bench serve"
  anser bench 127.0.0.1:8972 Echo.Bytes --payload 65536
  anser bench --serve --compress zstd                        # cost and effect of compression
  anser bench --serve --callers 1000 --procs all             # does it use all processors?
  anser bench arith Arith.Mul --data '{"A": 7, "B": 8}' --rate 500 --json`, "\n"),
		Args: func(c *cobra.Command, args []string) error {
			if f.serve {
				return takes(0, 1)(c, args)
			}
			return takes(2, 2)(c, args)
		},
		ValidArgsFunction: completeTarget(&f.registry, &f.tls),
		RunE: func(c *cobra.Command, args []string) error {
			f.connsSet = c.Flags().Changed("conns")
			if err := f.check(); err != nil {
				return err
			}
			switch {
			case !f.serve && f.procs != "":
				return benchProcs(c.Context(), s, &f, args[0], args[1])
			case !f.serve:
				return bench(c.Context(), s, &f, args[0], args[1], nil)
			}
			method := string(load.SayMethod)
			switch {
			case len(args) > 0:
				method = args[0]
			case f.payload >= 0:
				method = string(load.EchoMethod)
			}
			if f.procs != "" {
				return benchProcs(c.Context(), s, &f, "", method)
			}
			return benchOwn(c.Context(), s, &f, method)
		},
	}
	f.registry.add(c)
	f.tls.add(c)
	f.follow.add(c)
	c.Flags().BoolVar(&f.serve, "serve", false, "start a server as another process and load that; no TARGET then, METHOD is optional")
	c.Flags().IntVarP(&f.callers, "callers", "c", 100, "concurrent callers")
	c.Flags().IntVar(&f.conns, "conns", 2, "connections per address, shared by the callers")
	c.Flags().Float64Var(&f.rate, "rate", 0, "calls per second of all callers together; 0 is a closed loop")
	c.Flags().IntVar(&f.payload, "payload", -1, "number of bytes to send, with the raw codec")
	c.Flags().StringVar(&f.data, "data", "", "send this message, with the JSON codec")
	c.Flags().Float64Var(&f.seconds, "seconds", 5, "how long to measure")
	c.Flags().Float64Var(&f.warmup, "warmup", 1, "seconds of load before that")
	c.Flags().StringVar(&f.procs, "procs", "", "measure with each of these numbers of processors, such as 1,2,4, or all")
	c.Flags().StringVar(&f.profiles, "profiles", "", "write profiles of each step of --procs into this folder")
	timeoutFlag(c, &f.timeout, 10*time.Second, "how long one call may take")
	compressFlag(c, &f.compress)
	jsonFlag(c, &f.json)
	c.AddCommand(newBenchServe(s))
	return c
}

func (f *benchFlags) check() error {
	switch {
	case f.callers < 1:
		return usagef("--callers %d: at least 1 is needed", f.callers)
	case f.conns < 1:
		return usagef("--conns %d: at least 1 is needed", f.conns)
	case f.rate < 0:
		return usagef("--rate %g: use calls per second, or 0 for a closed loop", f.rate)
	case f.seconds <= 0 || f.warmup < 0:
		return usagef("--seconds must be more than 0, and --warmup not less")
	case f.payload > 64<<20:
		return usagef("--payload %d is too large: at most 64 MiB", f.payload)
	case f.profiles != "" && f.procs == "":
		return usagef("--profiles belongs to --procs")
	case f.payload >= 0 && f.data != "":
		return usagef("--payload sends bytes and --data a message: use one of them")
	case f.data != "":
		return checkJSON([]byte(f.data))
	}
	return nil
}

// benchOwn starts a server for the duration of the measurement.
func benchOwn(ctx context.Context, s streams, f *benchFlags, method string) error {
	group := child.NewGroup()
	defer group.Close()
	server, err := group.Start("bench", "serve", "--listen", "127.0.0.1:0", "--child")
	if err != nil {
		return err
	}
	defer server.End(3 * time.Second)
	var said serving
	starting, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := server.Ready(starting, &said); err != nil {
		return fmt.Errorf("start a server: %w", err)
	}
	return bench(ctx, s, f, said.Address, method, []int{server.PID()})
}

// bench loads the target, and prints the report.
func bench(ctx context.Context, s streams, f *benchFlags, typed, method string, servers []int) error {
	report, measured, err := measure(ctx, f, typed, method, servers)
	if !measured {
		return err
	}
	if !f.json {
		showBench(s, f, report)
		return err
	}
	if failed := printJSONLine(s.out, report); failed != nil {
		return failed
	}
	return err
}

// measure loads the target; servers are the processes behind it, or nil if they are not known. A
// report with measured calls may come with an error, because calls failed.
func measure(ctx context.Context, f *benchFlags, typed, method string, servers []int) (report benchReport, measured bool, err error) {
	compressed, err := compression(f.compress)
	if err != nil {
		return report, false, err
	}
	work := f.workload(method)
	opts, err := f.follow.options(typed, &f.registry)
	if err != nil {
		return report, false, err
	}
	opts = append(append(opts, work.Options...), anser.Conns(f.conns), anser.Timeout(f.timeout), compressed)
	c, err := dial(ctx, typed, &f.registry, &f.tls, opts...)
	if err != nil {
		return report, false, err
	}
	defer c.Close()
	// One call first: a wrong target or method must not fail a million times.
	if err := callOnce(ctx, c, f.timeout, work.NewCaller(c, method)); err != nil {
		if e, ok := err.(*anser.Error); ok {
			err = explain(c, e)
		}
		return report, false, err
	}
	if servers == nil {
		servers = serversOf(c)
	}
	cpu := meter{servers: servers}
	o := load.Options{
		Callers: f.callers, Rate: f.rate,
		Warmup: seconds(f.warmup), For: seconds(f.seconds),
		Began: func() {
			if f.began != nil {
				f.began()
			}
			cpu.begin()
		},
		Ended: func() {
			cpu.end()
			if f.ended != nil {
				f.ended()
			}
		},
	}
	result := load.Run(ctx, o, func() load.Caller { return work.NewCaller(c, method) })
	report = newBenchReport(f, c.Status().Target, method, work.Bytes, &result, &cpu)
	report.compressed(c.Status().Compression)
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("interrupted after %.1f s", report.Seconds)
	case result.Failed > 0:
		err = someFailed(result.Failed, result.Calls, result.FirstErr)
	}
	return report, true, err
}

// someFailed is the error after failed calls. The first of them does not choose the exit code.
func someFailed(failed, succeeded int64, first error) error {
	return fmt.Errorf("%s of %s calls failed; the first: %v", table.Count(failed), table.Count(failed+succeeded), first)
}

func (f *benchFlags) workload(method string) load.Workload {
	switch {
	case f.payload >= 0:
		return load.Bytes(f.payload)
	case f.data != "":
		return load.JSON([]byte(f.data))
	case method == string(load.SayMethod):
		return load.Say()
	}
	return load.JSON([]byte("{}"))
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

// serversOf returns the processes of the instances, or nil if one of them is unknown.
func serversOf(c *anser.Client) []int {
	var addresses []string
	for _, in := range c.Status().Instances {
		addresses = append(addresses, in.Address)
	}
	pids, err := cputime.Listeners(addresses)
	if err != nil {
		return nil
	}
	return pids
}

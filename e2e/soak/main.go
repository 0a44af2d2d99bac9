// Soak calls servers that come and go over connections that are cut, in every way in which Anser
// calls, and looks at every reply: whether it is that of its request, and whether anything is left
// behind in the end.
//
//	go run ./e2e/soak --help
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `Usage: go run ./e2e/soak [flags]
       go run -race ./e2e/soak --cancel [flags]

Runs servers and clients in this process, over TCP and TLS. Servers are replaced, drained or closed
abruptly, and so are clients; connections are cut. Callers make calls of all kinds, with random
deadlines and cancellations. Every message has an ID and content derived from it, and both sides
check them. A line every ten seconds reports the finished calls and the resources of the process.
The verdict at the end requires: no failures, no leaked goroutines or descriptors, and no more
memory in the last quarter than in the first. Otherwise the exit code is 1.

With --cancel it makes --calls calls to one server instead. Nearly all of them are cancelled: before
they are sent, while they are written, while they run, or while they are answered.

Flags:
`

// options are the command line.
type options struct {
	length   time.Duration
	report   time.Duration
	clients  int
	callers  int
	registry string
	churn    time.Duration
	cuts     time.Duration
	seed     uint64
	profile  string
	cancel   bool
	calls    int64
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("soak: ")
	var o options
	flag.DurationVar(&o.length, "for", time.Hour, "duration of the run")
	flag.DurationVar(&o.report, "report", 10*time.Second, "interval of the lines")
	flag.IntVar(&o.clients, "clients", 6, "concurrent clients; each runs for some seconds")
	flag.IntVar(&o.callers, "callers", 8, "callers per client")
	flag.StringVar(&o.registry, "registry", "memory", "where servers register: memory, or embedded for etcd in this process")
	flag.DurationVar(&o.churn, "churn", time.Second, "average interval between replacements of servers; 0: never")
	flag.DurationVar(&o.cuts, "cuts", 200*time.Millisecond, "average interval between cuts of connections; 0: never")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the random decisions; 0: a random seed. The scheduling of goroutines still differs between runs")
	flag.StringVar(&o.profile, "heap-profile", "", "file for a heap profile, written with every line")
	flag.BoolVar(&o.cancel, "cancel", false, "only make and cancel --calls calls")
	flag.Int64Var(&o.calls, "calls", 10_000_000, "number of calls of --cancel")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unknown argument %q: --help lists the flags", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, o, os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	if !ok {
		os.Exit(1)
	}
}

// run runs as configured, until the time is over or ctx ends, and reports whether there were no
// failures.
func run(ctx context.Context, o options, w io.Writer) (bool, error) {
	switch {
	case o.length <= 0 || o.report <= 0 || o.clients < 1 || o.callers < 1 || o.calls < 1:
		return false, fmt.Errorf("--for, --report, --clients, --callers and --calls must be positive")
	case o.churn < 0 || o.cuts < 0:
		return false, fmt.Errorf("--churn and --cuts must not be negative: 0 switches them off")
	case o.registry != "memory" && o.registry != "embedded":
		return false, fmt.Errorf("unknown registry %q: want memory or embedded", o.registry)
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	fmt.Fprintf(w, "seed %d\n", o.seed)
	if o.cancel {
		return cancelled(ctx, o, w)
	}
	return soak(ctx, o, w)
}

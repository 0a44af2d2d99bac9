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

Runs servers and clients in this process, over TCP and TLS. Servers are replaced, drained or closed at once;
clients too; connections are cut. Callers make calls of all kinds, with deadlines and cancels at random. Every
message carries an id and bytes that follow from it, and both sides check them. A line every ten seconds says what
was done and what the process holds, and the verdict in the end whether all of it is well: no failure, no goroutine
and no descriptor left, no more memory in the last quarter than in the first. The exit code is 1 if not.

With --cancel it makes --calls calls of one server instead, nearly all of which are cancelled: before they are sent,
while they are written, while they run, when they are answered.

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
	flag.DurationVar(&o.length, "for", time.Hour, "how long to call")
	flag.DurationVar(&o.report, "report", 10*time.Second, "time between two lines")
	flag.IntVar(&o.clients, "clients", 6, "clients at a time; each lives for some seconds")
	flag.IntVar(&o.callers, "callers", 8, "callers of a client")
	flag.StringVar(&o.registry, "registry", "memory", "where servers register: memory, or embedded for etcd in this process")
	flag.DurationVar(&o.churn, "churn", time.Second, "average time between two replacements of a server; 0: never")
	flag.DurationVar(&o.cuts, "cuts", 200*time.Millisecond, "average time between two cuts of a connection; 0: never")
	flag.Uint64Var(&o.seed, "seed", 0, "of what is drawn at random; 0 draws one. Goroutines run as they like all the same")
	flag.StringVar(&o.profile, "heap-profile", "", "file to write what is in the heap to, at every line")
	flag.BoolVar(&o.cancel, "cancel", false, "cancel --calls calls in place of everything else")
	flag.Int64Var(&o.calls, "calls", 10_000_000, "calls of --cancel")
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

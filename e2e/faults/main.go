// Faults runs faults against servers, a registry and clients in separate processes, each on its
// own host (a network namespace, if it runs as root), under an open-loop load, and reports for
// each whether the project's guarantees held. It records all executions and all outcomes in a
// ledger and joins them.
//
//	go run ./e2e/faults --help
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// options are the command line.
type options struct {
	Seconds  float64 // of each phase: before, during and after the fault
	Load     demand
	Clients  int           // processes that make the load; 0: one
	Timeout  time.Duration // of calls, but for rows that say otherwise
	Stall    time.Duration // of writes; 0: the default
	Loopback bool          // no hosts
	Long     bool          // rows have the size that the project promises, and not a small one

	peer string // the framework; empty: Anser
}

func (o options) phase() time.Duration { return time.Duration(o.Seconds * float64(time.Second)) }

const usageText = `Usage: go run ./e2e/faults [flags]

Runs faults, one row after another: a registry and three servers, each on its own host, and 64
client processes on another host; calls become due at a fixed rate, 60 % of the capacity that is
measured first; each row has a phase before, during and after the fault. Every execution of a call
and every outcome is recorded, and the ledger compares the two: a call that succeeded was executed
exactly once, a call that was not sent or was refused was not executed, a call with an unknown
outcome was executed at most once, and no call was executed twice.

With --peers grpc-go and rpcx run after Anser in the rows that need neither a registry nor another
feature that only Anser has: with the same fault, load, ledger and requirements. The report shows
their results next to those of Anser.

A row is held, lost (a requirement about time was missed), broken (a promise was missed), or not
run, with the reason. The exit code is 1 if a row is broken with Anser; results of other frameworks
do not change it.

Only one run at a time is possible on a machine. The result of a row includes the CPU usage of other
programs during the row.

Hosts are network namespaces: they need root, and the programs ip and iptables. Without them
everything runs on the loopback, and rows that need hosts are not run.

Flags:
`

func main() {
	log.SetFlags(0)
	if role := os.Getenv(roleEnv); role != "" {
		log.SetPrefix(role + ": ")
		if err := runRole(role); err != nil {
			log.Fatal(err)
		}
		return
	}
	log.SetPrefix("faults: ")
	var o options
	chosen := flag.String("rows", "", "names of rows, separated by commas; default: all")
	peers := flag.Bool("peers", false, "also run grpc-go and rpcx, in the rows that they support")
	asJSON := flag.Bool("json", false, "print one JSON object")
	list := flag.Bool("list", false, "print the names of the rows and exit")
	into := flag.String("into", "", "JSON file that is updated with the results, which replace older ones of the same rows; the report is written next to it, with the extension .md")
	flag.Float64Var(&o.Seconds, "seconds", 60, "seconds of each phase")
	o.Load.Share = 0.6
	flag.Var(&o.Load, "load", "share of the capacity, which is measured before each row, or calls/s")
	flag.IntVar(&o.Clients, "clients", callers, "client processes, from 1 to 64")
	flag.DurationVar(&o.Timeout, "timeout", 10*time.Second, "deadline of calls, except in rows with their own")
	flag.BoolVar(&o.Loopback, "loopback", false, "create no hosts")
	short := flag.Bool("short", false, "fewer restarts, connections and calls in rows that count them")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usageText)
		flag.PrintDefaults()
	}
	flag.Parse()
	o.Long = !*short
	if o.Seconds <= 0 || o.Clients < 1 || o.Clients > callers || o.Timeout <= 0 || flag.NArg() > 0 {
		log.Fatal("--seconds and --timeout must be positive, --clients from 1 to 64, and there are no arguments")
	}
	some, err := choose(*chosen)
	if err != nil {
		log.Fatal(err)
	}
	if *list {
		listRows(os.Stdout, some)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	plays := []play{}
	for _, r := range some {
		plays = append(plays, play{r, o})
		for _, name := range slices.Sorted(maps.Keys(peerNames)) {
			if o := o; *peers && r.peers {
				o.peer = name
				plays = append(plays, play{r, o})
			}
		}
	}
	if err := run(ctx, plays, *asJSON, *into, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// choose returns the rows of these names.
func choose(names string) ([]row, error) {
	all := rows()
	if names == "" {
		return all, nil
	}
	var some []row
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(all, func(r row) bool { return r.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("there is no row %q: --list names them", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}

func listRows(w io.Writer, some []row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range some {
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.name, r.fault, r.bar)
	}
	t.Flush()
}

// play is a row with a framework.
type play struct {
	row
	o options
}

// run plays the rows, one after the other and no other run at the same time.
func run(ctx context.Context, some []play, asJSON bool, into string, w io.Writer) error {
	unlock, err := lockAlone(filepath.Join(os.TempDir(), "anser-faults.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	m := describe(ctx)
	var all []*result
	for _, p := range some {
		if !asJSON {
			fmt.Fprintf(w, "%s: %s\n", p.title(), p.fault)
		}
		m.Busy = busy()
		got := p.play(ctx)
		m.Others = got.Others
		got.machine = m
		if ctx.Err() != nil {
			return ctx.Err()
		}
		all = append(all, got)
		if !asJSON {
			got.print(w)
		}
		if into != "" {
			if err := writeInto(into, got); err != nil {
				return err
			}
		}
	}
	if asJSON {
		if err := json.NewEncoder(w).Encode(document{Rows: all}); err != nil {
			return err
		}
	}
	if n := len(slices.DeleteFunc(all, func(r *result) bool { return r.State != broken || r.Peer != "" })); n > 0 {
		return fmt.Errorf("%d rows are broken", n)
	}
	return nil
}

func (p play) title() string {
	if p.o.peer == "" {
		return p.name
	}
	return p.name + ", " + peerNames[p.o.peer]
}

// print writes what the row showed.
func (r *result) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r.Figures {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", f.Name, f.text(), f.verdict())
	}
	t.Flush()
	for _, e := range r.Errors {
		fmt.Fprintf(w, "  %s\n", e)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(w, "  BROKEN: %s\n", v)
	}
	if text := r.crowded(); text != "" {
		fmt.Fprintf(w, "  %s\n", text)
	}
	fmt.Fprintf(w, "  %s", r.State)
	if r.Why != "" {
		fmt.Fprintf(w, ": %s", r.Why)
	}
	fmt.Fprint(w, "\n\n")
}

// errNoRows is for a file that is not one of results.
var errNoRows = errors.New("it has no rows: it is not a file of results")

// Overload measures the goodput of RPC servers that are offered more than they can do: replies
// within their deadline a second, at several times the load that saturates the server. Nothing is
// asserted: time depends on the machine and on what else it does.
//
//	go run ./e2e/overload --help
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `Usage: go run ./e2e/overload [flags]

Builds the peers from arena/peers. For each server it first measures the throughput with 16 callers
that wait for their replies (1 x), and then the goodput at multiples of that: calls become due at a
fixed rate, regardless of the server, and a call counts if its reply arrives within the deadline.
Clients use their defaults; Anser's retry within their budget. Server and client are processes with
one processor each (GOMAXPROCS=1).

Handlers:
  slots  sleeps 8 ms and has 8 slots, like a pool of connections: 1,000 calls/s at most
  burn   keeps the processor busy for 1 ms

Peers: anser-adaptive (with anser.AdaptiveLimit), anser (default options), grpc-go, rpcx, kitex.

Flags:
`

// options are the command line.
type options struct {
	Seconds  float64   `json:"seconds"`
	Warmup   float64   `json:"warmup_s"`
	Deadline int       `json:"deadline_ms"`
	Rounds   int       `json:"rounds"`
	Loads    []float64 `json:"loads"`
}

// peer is how a framework is run.
type peer struct {
	name   string
	folder string
	server []string
	client []string
}

var peers = []peer{
	{"anser-adaptive", "anser", []string{"--adaptive"}, nil},
	{"anser", "anser", nil, nil},
	{"grpc-go", "grpc", nil, nil},
	{"rpcx", "rpcx", nil, nil},
	{"kitex", "kitex", []string{"--transport", "mux"}, []string{"--transport", "mux"}},
}

var handlers = map[string][]string{
	"slots": {"--slots", "8", "--sleep-us", "8000"},
	"burn":  {"--work-us", "1000"},
}

// row is one measurement, the median of its rounds by goodput.
type row struct {
	Handler string  `json:"handler"`
	Peer    string  `json:"peer"`
	Load    float64 `json:"load"`       // multiple of the rate that saturates the server
	Offered float64 `json:"offered"`    // calls/s
	Goodput float64 `json:"goodput"`    // replies within the deadline, per second
	Failed  float64 `json:"failed"`     // other calls, per second
	CPU     float64 `json:"server_cpu"` // processors used by the server
	Error   string  `json:"error,omitempty"`
}

// document is what --json prints.
type document struct {
	When       string  `json:"when"`
	Go         string  `json:"go"`
	Processors int     `json:"processors"`
	Options    options `json:"options"`
	Rows       []row   `json:"rows"`
	// Busy says that other processes took more than a twentieth of the machine in between.
	Busy bool `json:"busy"`
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("overload: ")
	o := options{}
	flag.Float64Var(&o.Seconds, "seconds", 2, "seconds of each measurement")
	flag.Float64Var(&o.Warmup, "warmup", 2, "seconds of the same load before each measurement")
	flag.IntVar(&o.Deadline, "deadline", 250, "deadline of calls in milliseconds")
	flag.IntVar(&o.Rounds, "rounds", 3, "rounds, of which the table shows the median")
	loads := flag.String("loads", "0.5,1,2,5,10", "multiples of the rate that saturates a server")
	chosen := flag.String("peers", "", "names of peers, separated by commas; default: all")
	kinds := flag.String("handlers", "slots,burn", "slots, burn")
	asJSON := flag.Bool("json", false, "print one JSON object")
	svg := flag.String("svg", "", "SVG file for the chart of the goodput")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	for _, f := range strings.Split(*loads, ",") {
		x, err := strconv.ParseFloat(f, 64)
		if err != nil || x <= 0 {
			log.Fatalf("--loads %s: want numbers above 0, separated by commas", *loads)
		}
		o.Loads = append(o.Loads, x)
	}
	if o.Seconds <= 0 || o.Warmup < 0 || o.Deadline < 1 || o.Rounds < 1 || flag.NArg() > 0 {
		log.Fatal("--seconds, --deadline and --rounds must be positive, and there are no arguments")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, o, *chosen, *kinds, *asJSON, *svg, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options, chosen, kinds string, asJSON bool, svg string, out io.Writer) error {
	var some []peer
	for _, p := range peers {
		if chosen == "" || slices.Contains(strings.Split(chosen, ","), p.name) {
			some = append(some, p)
		}
	}
	if len(some) == 0 {
		return fmt.Errorf("--peers %s: there is none of that name; see --help", chosen)
	}
	folder, err := os.MkdirTemp("", "overload")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	programs, err := buildAll(ctx, folder, some)
	if err != nil {
		return err
	}
	doc := document{When: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version(), Processors: runtime.NumCPU(), Options: o}
	for _, kind := range strings.Split(kinds, ",") {
		flags, ok := handlers[kind]
		if !ok {
			return fmt.Errorf("--handlers %s: want slots, burn or both", kinds)
		}
		for _, p := range some {
			m := measurement{o: o, peer: p, kind: kind, flags: flags, program: programs[p.folder]}
			rows, busy, err := m.rows(ctx)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", p.name, kind, err)
			}
			doc.Rows = append(doc.Rows, rows...)
			doc.Busy = doc.Busy || busy
		}
	}
	if svg != "" {
		if err := os.WriteFile(svg, draw(&doc), 0o644); err != nil {
			return err
		}
	}
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(doc)
	}
	doc.table(out)
	return nil
}

// peak is the most goodput of a peer.
func (d *document) peak(kind, name string) float64 {
	most := 0.0
	for _, r := range d.Rows {
		if r.Handler == kind && r.Peer == name {
			most = max(most, r.Goodput)
		}
	}
	return most
}

func (d *document) table(out io.Writer) {
	fmt.Fprintf(out, "%-8s %-15s %6s %10s %10s %8s %10s %6s  %s\n", "handler", "peer", "load", "offered/s", "goodput/s", "of peak", "failed/s", "CPU", "first error")
	for _, r := range d.Rows {
		fmt.Fprintf(out, "%-8s %-15s %5gx %10.0f %10.0f %7.0f%% %10.0f %6.2f  %.70s\n",
			r.Handler, r.Peer, r.Load, r.Offered, r.Goodput, 100*r.Goodput/max(d.peak(r.Handler, r.Peer), 1), r.Failed, r.CPU, r.Error)
	}
	if d.Busy {
		fmt.Fprintln(out, "\nOther processes used more than 5 % of the machine in between: repeat this on a quiet one.")
	}
}

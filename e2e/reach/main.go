// Reach measures on this machine what the project promises to reach, and prints a table, or one
// JSON object. Nothing is asserted: time depends on the machine and on what else it does.
//
//	go run ./e2e/reach --help
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/anser-rpc/anser/e2e/internal/say"
)

// options are the command line.
type options struct {
	rounds  int
	scale   float64
	conns   int
	ceiling string // path of the program
	before  string // path of the program of another commit, for the section observe
	kitex   string // path of the program of arena/peers/kitex; empty: it is not measured
	envoy   string // path of the program; empty: it is not measured
	anser   string // path of the program
	dir     string // for programs that are built
}

const usage = `Usage: go run ./e2e/reach [flags] [section ...]

Measures the performance goals of Anser on this machine. Servers and clients are separate processes
with default options. The compared programs run alternately, round by round; each ratio is that of
one round, and the table shows the median, minimum and maximum of all rounds.

Sections (default: all):
  say    the 581-byte workload at 1, 100 and 1000 callers, against the ceiling program
  round  one caller's round trip, and that of the ceiling program, against a bare TCP ping-pong of the same bytes
  slow   the other calls, while 1 % of the calls, chosen at random, sleep 10 ms in their handler
  stream messages of 1 KiB one way on a stream, against the same bytes on a bare connection; and calls
         next to a stream with a slow reader, on one connection
  burn   a handler that burns 100 µs of CPU, called from one connection: how many cores it uses
  idle   memory and CPU of a server with idle connections
  conns  what a call costs with 1,000 and 5,000 connections in the client, one caller on each, against 100,
         and what an exchange over as many bare connections costs; and the CPU of the client while the
         connections are quiet
  forward  the CPU of a server that forwards calls, against that of the server of direct calls, at 100 and
         1000 callers
  gateway  processor time of client, gateway and server, and p50, of calls through anser gateway against direct
         ones, over Anser's protocol, in gRPC and in JSON, 100 callers; and of grpc-gateway, and with --envoy
         of Envoy, in front of a server of grpc-go
  observe  calls that are observed against calls that are not, at 100 and 1000 callers: with metrics; with
         metrics, traces of 1 % of the calls and of slow ones, and an admin page that is looked at; of grpc-go
         with otelgrpc; with --kitex of Kitex with obs-opentelemetry; and with --before, calls that nothing observes against those of another commit
  large  messages of 1, 16 and 256 MiB of bytes in both directions, one call at a time, against the same bytes
         over a bare connection; and calls of 581 bytes next to those of 16 MiB, on one connection

Flags:
`

func main() {
	log.SetFlags(0)
	log.SetPrefix("reach: ")
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "process-") {
		runProcess(os.Args[1], os.Args[2:])
		return
	}
	var o options
	asJSON := flag.Bool("json", false, "print one JSON object")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each comparison")
	flag.Float64Var(&o.scale, "scale", 1, "factor for the number of calls per measurement, which takes about one second")
	flag.IntVar(&o.conns, "conns", 10_000, "idle connections")
	flag.StringVar(&o.ceiling, "ceiling", "", "path of the program of internal/ceiling; default: it is built")
	flag.StringVar(&o.before, "before", "", "path of this program built with the library of another commit, for the section observe; default: it is left out")
	flag.StringVar(&o.kitex, "kitex", "", "path of the program of arena/peers/kitex, which the section observe measures with its tracer; default: it is left out")
	flag.StringVar(&o.envoy, "envoy", "", "path of Envoy, which is measured by the section gateway; default: it is left out")
	flag.StringVar(&o.anser, "anser", "", "path of the program anser, which is measured by the section console; default: it is built")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if o.rounds < 1 || o.scale <= 0 || o.conns < 1 {
		log.Fatal("--rounds, --scale and --conns must be positive")
	}
	names := flag.Args()
	if len(names) == 0 {
		names = []string{"say", "round", "slow", "stream", "burn", "idle", "conns", "forward", "gateway", "observe", "console", "large"}
	}
	if err := run(o, names, *asJSON, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run measures the sections in turn and prints them.
func run(o options, names []string, asJSON bool, w io.Writer) error {
	for _, name := range names {
		if _, ok := sections[name]; !ok {
			return fmt.Errorf("unknown section %q: --help lists them", name)
		}
	}
	dir, err := os.MkdirTemp("", "anser-reach-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.dir = dir
	if o.ceiling == "" {
		o.ceiling = filepath.Join(dir, "ceiling")
		if err := build(o.ceiling, "github.com/anser-rpc/anser/internal/ceiling"); err != nil {
			return err
		}
	}
	r := newReport()
	for _, name := range names {
		if !asJSON {
			fmt.Fprintf(os.Stderr, "measuring %s\n", name)
		}
		if err := sections[name](o, r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	return r.print(w)
}

// runProcess is what a process does that reach has started.
func runProcess(role string, args []string) {
	signal.Ignore(os.Interrupt) // is for the parent, whose end closes stdin
	var err error
	switch role {
	case "process-server":
		err = say.Serve(os.Stdin, os.Stdout)
	case "process-forward":
		err = say.ServeForward(args[0], os.Stdin, os.Stdout)
	case "process-protocols":
		err = say.ServeProtocols(os.Stdin, os.Stdout)
	case "process-gateway":
		err = say.ServeGateway(args[0], os.Stdin, os.Stdout)
	case "process-grpc":
		err = say.ServeGRPC(os.Stdin, os.Stdout)
	case "process-grpcgateway":
		err = say.ServeGRPCGateway(args[0], os.Stdin, os.Stdout)
	case "process-bare":
		err = say.ServeBare(os.Stdin, os.Stdout)
	case "process-large":
		err = say.ServeLarge(os.Stdin, os.Stdout)
	case "process-barelarge":
		err = say.ServeBareLarge(os.Stdin, os.Stdout)
	case "process-drain":
		err = runDrain()
	case "process-registry":
		err = say.ServeRegistry(os.Stdin, os.Stdout)
	case "process-watched":
		err = runWatched(say.ServeWatched, args[0], os.Stdin, os.Stdout)
	case "process-callers":
		err = runWatched(say.LoadWatched, args[0], os.Stdin, os.Stdout)
	case "process-load":
		err = runLoad(args)
	case "process-idle":
		err = runIdle(args)
	default:
		err = fmt.Errorf("unknown process %q", role)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// runDrain reads what comes over bare connections until stdin is closed.
func runDrain() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(say.Stat{Addr: l.Addr().String()}); err != nil {
		return err
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		l.Close()
	}()
	return say.Drain(l)
}

// loads are what a process of the role process-load can do.
var loads = map[string]func(say.Options) (say.Result, error){"calls": say.Load, "bounce": say.Bounce, "stream": say.Stream, "pour": say.Pour, "grpc": say.LoadGRPC, "json": say.LoadJSON, "swap": say.Swap, "swapbare": say.SwapBare, "beside": say.SayBeside}

func runLoad(args []string) error {
	var o say.Options
	if err := json.Unmarshal([]byte(args[1]), &o); err != nil {
		return err
	}
	if o.Own {
		o.Ready = func() { fmt.Println("{}") }
	}
	r, err := loads[args[0]](o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// runIdle holds connections until stdin is closed.
func runIdle(args []string) error {
	var n int
	if _, err := fmt.Sscan(args[1], &n); err != nil {
		return err
	}
	conns, err := say.Idle(args[0], n)
	if errors.Is(err, syscall.EMFILE) {
		err = fmt.Errorf("%w: raise the limit of open files (ulimit -n) over %d, or ask for fewer with --conns", err, n)
	}
	if err != nil {
		return err
	}
	fmt.Println(len(conns))
	io.Copy(io.Discard, os.Stdin)
	closeAll(conns)
	return nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		c.Close()
	}
}

// Hedge measures what second attempts (anser.Backup) do to the latency of a service that has one
// slow instance.
//
//	go run ./e2e/hedge --help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
)

// options are the command line.
type options struct {
	instances int
	callers   int
	rounds    int
	each      time.Duration // of one measurement
	usual     time.Duration
	slow      time.Duration
	share     float64 // of the calls of the slow instance that are slow
	balancer  balance.Balancer
	svg       string
}

const usage = `Usage: go run ./e2e/hedge [flags]

Serves a method at several instances in this process, over loopback sockets. A call takes about
--usual; at one of the instances a share of the calls takes --slow. Clients alternate between the
fail modes failover and backup, and the table shows all rounds. It makes no assertions.

The default balancer considers latency and rarely calls a slow instance; round_robin shows the
effect of second attempts alone.

Flags:
`

func main() {
	log.SetFlags(0)
	log.SetPrefix("hedge: ")
	var o options
	flag.IntVar(&o.instances, "instances", 5, "instances, one of which is slow")
	flag.IntVar(&o.callers, "callers", 8, "callers, each with one call at a time")
	flag.IntVar(&o.rounds, "rounds", 4, "rounds of both modes")
	flag.DurationVar(&o.each, "each", 2*time.Second, "length of one measurement")
	flag.DurationVar(&o.usual, "usual", 2*time.Millisecond, "duration of a call")
	flag.DurationVar(&o.slow, "slow", 50*time.Millisecond, "duration of a slow call")
	flag.Float64Var(&o.share, "share", 1, "share of the slow instance's calls that are slow")
	name := flag.String("balancer", "p2c", "balancer: "+strings.Join(balance.Names(), ", "))
	flag.StringVar(&o.svg, "svg", "", "SVG file for the chart of the latencies")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if o.instances < 2 || o.callers < 1 || o.rounds < 1 || o.each <= 0 || o.usual <= 0 || o.share < 0 || o.share > 1 {
		log.Fatal("there must be two instances, one caller, one round, times above 0 and a share from 0 to 1: see --help")
	}
	var err error
	if o.balancer, err = balance.ByName(*name, balance.Here{}); err != nil {
		log.Fatal(err)
	}
	if err := run(o, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

type (
	query  struct{ N int }
	answer struct{ N int }
)

// series holds the measurements of one mode.
type series struct {
	name  string
	times []time.Duration
	calls int64 // of the mode Backup
	sent  int64 // second attempts
	won   int64
}

func run(o options, w io.Writer) error {
	var addresses []string
	for i := range o.instances {
		address, stop, err := serve(o, i == 0)
		if err != nil {
			return err
		}
		defer stop()
		addresses = append(addresses, address)
	}
	target := "tcp://" + strings.Join(addresses, ",")
	plain, backup := &series{name: "failover"}, &series{name: "backup"}
	for range o.rounds {
		for _, s := range []*series{plain, backup} {
			if err := s.measure(o, target); err != nil {
				return err
			}
		}
	}
	for _, s := range []*series{plain, backup} {
		slices.Sort(s.times)
	}
	report(w, plain, backup)
	if o.svg == "" {
		return nil
	}
	return os.WriteFile(o.svg, draw(o, plain, backup), 0o644)
}

func serve(o options, slow bool) (address string, stop func(), err error) {
	s := anser.NewServer()
	anser.Handle(s, "Stock.Find", func(_ context.Context, in *query) (*answer, error) {
		take := time.Duration((0.75 + 0.5*rand.Float64()) * float64(o.usual))
		if slow && rand.Float64() < o.share {
			take = o.slow
		}
		time.Sleep(take)
		return &answer{in.N}, nil
	}, anser.Idempotent(), anser.Concurrent())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	go s.Serve(l)
	return l.Addr().String(), func() { s.Close() }, nil
}

// measure makes calls with a new client. Calls during its learning phase do not count.
func (s *series) measure(o options, target string) error {
	opts := []anser.DialOption{anser.Idempotent(), anser.Balancer(o.balancer)}
	if s.name == "backup" {
		opts = append(opts, anser.WithFailMode(anser.Backup))
	}
	c, err := anser.Dial(target, opts...)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := load(c, o.callers, o.each/4); err != nil {
		return err
	}
	before := c.Status().Backup
	times, err := load(c, o.callers, o.each)
	if err != nil {
		return err
	}
	s.times = append(s.times, times...)
	if after := c.Status().Backup; len(after) > 0 {
		s.calls += after[0].Calls - before[0].Calls
		s.sent += after[0].Sent - before[0].Sent
		s.won += after[0].Won - before[0].Won
	}
	return nil
}

func load(c *anser.Client, callers int, length time.Duration) ([]time.Duration, error) {
	end := time.Now().Add(length)
	times, errs := make([][]time.Duration, callers), make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := 0; time.Now().Before(end) && errs[i] == nil; n++ {
				began := time.Now()
				_, errs[i] = anser.Call[answer](context.Background(), c, "Stock.Find", &query{n})
				times[i] = append(times[i], time.Since(began))
			}
		})
	}
	wg.Wait()
	return slices.Concat(times...), errors.Join(errs...)
}

// at returns the latency within which a share of the calls was answered.
func (s *series) at(share float64) time.Duration {
	return s.times[min(int(share*float64(len(s.times))), len(s.times)-1)]
}

func report(w io.Writer, plain, backup *series) {
	fmt.Fprintf(w, "%-10s %8s %9s %9s %9s %9s %12s\n", "mode", "calls", "p50", "p95", "p99", "p99.9", "second")
	for _, s := range []*series{plain, backup} {
		second := "-"
		if s.calls > 0 {
			second = fmt.Sprintf("%.1f %% (%d)", 100*float64(s.sent)/float64(s.calls), s.sent)
		}
		fmt.Fprintf(w, "%-10s %8d", s.name, len(s.times))
		for _, share := range []float64{0.5, 0.95, 0.99, 0.999} {
			fmt.Fprintf(w, " %6.1f ms", ms(s.at(share)))
		}
		fmt.Fprintf(w, " %12s\n", second)
	}
	fmt.Fprintf(w, "p99 with backup is %.2f of that without\n", ms(backup.at(0.99))/ms(plain.at(0.99)))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

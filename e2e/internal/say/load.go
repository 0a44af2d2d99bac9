package say

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// Options are what a load does.
type Options struct {
	Addr    string
	Callers int
	Calls   int           // shared by the callers
	Conns   int           // connections to begin with; 0 is the default of Anser
	Slow    float64       // share of calls, chosen at random, that are slow
	OwnSlow bool          // the slow calls have a method of their own
	Burn    bool          // all calls burn CPU on the server
	Beside  bool          // a stream with a slow reader runs next to the calls
	Size    int           // of the messages of Stream and Pour, bytes
	Own     bool          // each caller has its own connection, without calls of others
	Quiet   time.Duration // for how long the connections stay open after the calls

	Ready func() `json:"-"` // is called before the first call that counts; nil: nothing is
}

// Result holds the measurements of a load. The slow calls are not in the percentiles. The names
// are those of the ceiling program.
type Result struct {
	Calls     int     `json:"calls"`
	Seconds   float64 `json:"seconds"`
	CallsPerS float64 `json:"calls_per_s"`
	ClientCPU float64 `json:"client_cpu_us_per_call"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Max       float64 `json:"max_us"`
	QuietCPU  float64 `json:"quiet_cpu_percent,omitempty"` // of a core, while nothing was called
}

// Load makes the calls and returns their results.
func Load(o Options) (r Result, err error) {
	option, end, err := observing(os.Getenv(ObserveVariable))
	if err != nil {
		return Result{}, err
	}
	defer end()
	opts := []anser.DialOption{option}
	if o.Conns > 0 {
		opts = append(opts, anser.Conns(o.Conns))
	}
	c, err := anser.Dial(o.Addr, opts...)
	if err != nil {
		return Result{}, err
	}
	defer c.Close()
	if _, err := methodSay.Call(context.Background(), c, benchpb.Filled()); err != nil {
		return Result{}, err // and there is a connection now
	}
	clientOf := func(int) *anser.Client { return c }
	if o.Own {
		clients, err := ownClients(o)
		defer closeAll(clients)
		if err != nil {
			return Result{}, err
		}
		clientOf = func(i int) *anser.Client { return clients[i] }
	}
	if o.Beside {
		stop, e := besideSlow(c)
		if e != nil {
			return Result{}, e
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	r, err = together(o, func(i int) error {
		if o.Own {
			return warmUp(clientOf(i))
		}
		return nil
	}, func(i int) ([]time.Duration, error) { return callInTurn(clientOf(i), o) })
	r.QuietCPU = quietCPU(o.Quiet)
	return r, err
}

// resultOf returns the result of calls that took elapsed, and the processor for cpu.
func resultOf(calls int, elapsed, cpu time.Duration, latencies [][]time.Duration) Result {
	all := slices.Concat(latencies...)
	slices.Sort(all)
	at := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))].Nanoseconds()) / 1e3 }
	return Result{
		Calls: calls, Seconds: elapsed.Seconds(), CallsPerS: float64(calls) / elapsed.Seconds(),
		ClientCPU: cpu.Seconds() * 1e6 / float64(calls), P50: at(.5), P99: at(.99), Max: at(1),
	}
}

// settle is how long connections need to become idle.
const settle = 5 * time.Second

// quietCPU returns what the process uses in d without a call, in percent of a core.
func quietCPU(d time.Duration) float64 {
	if d == 0 {
		return 0
	}
	debug.FreeOSMemory() // which the runtime would do during the measurement
	time.Sleep(settle)
	before := cpuTime()
	time.Sleep(d)
	return (cpuTime() - before).Seconds() / d.Seconds() * 100
}

// ownClients returns a client with one connection for each caller. A dialer of its own keeps a
// client from sharing connections with the others.
func ownClients(o Options) (clients []*anser.Client, err error) {
	for range o.Callers {
		c, err := anser.Dial(o.Addr, anser.Conns(1), anser.Dialer(new(net.Dialer).DialContext))
		if err != nil {
			return clients, err
		}
		clients = append(clients, c)
	}
	return clients, nil
}

const warmUps = 5

// warmUp connects, and makes the calls after which a lone caller reads for itself.
func warmUp(c *anser.Client) error {
	for range warmUps {
		if _, err := methodSay.Call(context.Background(), c, benchpb.Filled()); err != nil {
			return err
		}
	}
	return nil
}

func closeAll(clients []*anser.Client) {
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.Close() })
	}
	wg.Wait()
}

// callInTurn makes one caller's calls and returns the latencies of the fast ones.
func callInTurn(c *anser.Client, o Options) ([]time.Duration, error) {
	ctx := context.Background()
	fast := benchpb.Filled()
	slow := fast // a second message per caller would evict the first from the caches
	if o.Slow > 0 {
		slow = benchpb.Filled()
		slow.Field3 = proto.Int32(slowMark)
	}
	fastMethod, slowMethod := methodSay, methodSay
	if o.OwnSlow {
		slowMethod = methodSlow
	}
	if o.Burn {
		fastMethod = methodBurn
	}
	n := o.Calls / o.Callers
	mine := make([]time.Duration, 0, n)
	for range n {
		m, in := fastMethod, fast
		isSlow := o.Slow > 0 && rand.Float64() < o.Slow
		if isSlow {
			m, in = slowMethod, slow
		}
		began := time.Now()
		out, err := m.Call(ctx, c, in)
		if err != nil {
			return nil, err
		}
		if !isSlow {
			mine = append(mine, time.Since(began))
		}
		if !benchpb.Answered(out) {
			return nil, fmt.Errorf("wrong reply %v", out)
		}
	}
	return mine, nil
}

package say

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	Calls   int     // shared by the callers
	Conns   int     // connections to begin with; 0 is the default of Anser
	Slow    float64 // share of calls, chosen at random, that are slow
	OwnSlow bool    // the slow calls have a method of their own
	Burn    bool    // all calls burn CPU on the server
	Beside  bool    // a stream whose reader is slow goes on beside the calls
	Size    int     // of the messages of Stream and Pour, bytes
}

// Result is what a load saw. The slow calls are not in the percentiles. The names are those of the
// ceiling program.
type Result struct {
	Calls     int     `json:"calls"`
	Seconds   float64 `json:"seconds"`
	CallsPerS float64 `json:"calls_per_s"`
	ClientCPU float64 `json:"client_cpu_us_per_call"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Max       float64 `json:"max_us"`
}

// Load makes the calls and returns what it saw.
func Load(o Options) (r Result, err error) {
	var opts []anser.DialOption
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
	if o.Beside {
		stop, e := besideSlow(c)
		if e != nil {
			return Result{}, e
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	latencies, errs := make([][]time.Duration, o.Callers), make([]error, o.Callers)
	var wg sync.WaitGroup
	began, cpu := time.Now(), cpuTime()
	for i := range o.Callers {
		wg.Go(func() { latencies[i], errs[i] = callInTurn(c, o) })
	}
	wg.Wait()
	elapsed, cpu := time.Since(began), cpuTime()-cpu
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	calls := o.Calls / o.Callers * o.Callers
	all := slices.Concat(latencies...)
	slices.Sort(all)
	at := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))].Nanoseconds()) / 1e3 }
	return Result{
		Calls: calls, Seconds: elapsed.Seconds(), CallsPerS: float64(calls) / elapsed.Seconds(),
		ClientCPU: cpu.Seconds() * 1e6 / float64(calls), P50: at(.5), P99: at(.99), Max: at(1),
	}, nil
}

// callInTurn makes one caller's calls and returns how long those took that were not slow.
func callInTurn(c *anser.Client, o Options) ([]time.Duration, error) {
	ctx := context.Background()
	fast := benchpb.Filled()
	slow := fast // a second message for each caller would take the caches from the first
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

// Package load puts a server under load and measures the results of its callers.
package load

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/anser-rpc/anser"
)

// Options configures the load.
type Options struct {
	Callers int     // maximum number of calls in flight, at least 1
	Rate    float64 // calls due per second, whatever their results; 0: each caller makes its next call when the last one has ended
	Warmup  time.Duration
	For     time.Duration // after the warm-up

	// Began and Ended are called when the measurement begins and when its last call has ended.
	Began, Ended func()
}

// Result is the result of the calls that began, or with a rate were due, during the measurement.
type Result struct {
	Elapsed   time.Duration // until the last call ended
	Calls     int64         // successful calls
	Failed    int64
	Errors    map[string]int64 // the failed calls by code
	FirstErr  error
	Missed    int64                   // calls that were due but could not be started
	Latencies *hdrhistogram.Histogram // in nanoseconds, of the successful calls
}

const (
	leastLatency = int64(100)
	mostLatency  = int64(10 * time.Minute)
	digits       = 3
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(leastLatency, mostLatency, digits)
}

// shard is a part of the figures. A histogram takes 200 KB: there are a few for all callers, not
// one per caller.
type shard struct {
	mu        sync.Mutex // guards the fields below
	latencies *hdrhistogram.Histogram
	errors    map[string]int64
	firstErr  error
	last      time.Time // when the last call ended
	_         [64]byte
}

// noted has the last latencies of a caller, which it enters into a shard together: with 1,000
// callers the lock of a shard was held for most of the calls, and waited for longer than all
// others.
type noted struct {
	shard     *shard
	last      time.Time // when the last call ended
	n         int
	latencies [16]int64
}

// note counts a call of the measurement.
func (c *noted) note(latency time.Duration, err error, now time.Time) {
	c.last = now
	if err != nil {
		c.shard.fail(err)
		return
	}
	if c.n == len(c.latencies) {
		c.enter()
	}
	c.latencies[c.n] = min(max(int64(latency), leastLatency), mostLatency)
	c.n++
}

// enter enters what was noted into the shard. The caller ends with it.
func (c *noted) enter() {
	s := c.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range c.latencies[:c.n] {
		s.latencies.RecordValue(l)
	}
	c.n = 0
	if c.last.After(s.last) {
		s.last = c.last
	}
}

func (s *shard) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors[anser.CodeOf(err).String()]++
	if s.firstErr == nil {
		s.firstErr = err
	}
}

// run is one measurement.
type run struct {
	o           Options
	from, until time.Time
	shards      []*shard
	pacer       *pacer // nil in a closed loop
}

// Run applies the load until the time is over or ctx is done, and waits for every call.
func Run(ctx context.Context, o Options, newCaller func() Caller) Result {
	begin := time.Now()
	r := &run{o: o, from: begin.Add(o.Warmup), until: begin.Add(o.Warmup + o.For)}
	for range min(o.Callers, 4*runtime.GOMAXPROCS(0)) {
		r.shards = append(r.shards, &shard{latencies: newHistogram(), errors: make(map[string]int64)})
	}
	var wg sync.WaitGroup
	if o.Rate > 0 {
		r.pacer = newPacer(begin, r.until, o.Rate)
		wg.Go(func() { r.pacer.run(ctx) })
	}
	var callers sync.WaitGroup
	for i := range o.Callers {
		call, own := newCaller(), &noted{shard: r.shards[i%len(r.shards)]}
		callers.Go(func() {
			defer own.enter()
			if r.pacer != nil {
				r.callWhenDue(ctx, call, own)
			} else {
				r.callInTurn(ctx, call, own)
			}
		})
	}
	if sleep(ctx, time.Until(r.from)) && o.Began != nil {
		o.Began()
	}
	callers.Wait()
	if o.Ended != nil {
		o.Ended()
	}
	wg.Wait()
	return r.result(ctx.Err() != nil)
}

// callInTurn is the closed loop. The end of a call is the beginning of the next: one clock reading
// per call.
func (r *run) callInTurn(ctx context.Context, call Caller, own *noted) {
	for now := time.Now(); now.Before(r.until) && ctx.Err() == nil; {
		began := now
		err := call(ctx)
		now = time.Now()
		if ctx.Err() == nil && !began.Before(r.from) {
			own.note(now.Sub(began), err, now)
		}
	}
}

// callWhenDue is the open loop. Latency is measured from the time a call was due, so that calls
// delayed by a slow server are included; see Gil Tene on coordinated omission.
func (r *run) callWhenDue(ctx context.Context, call Caller, own *noted) {
	for due := range r.pacer.due {
		if ctx.Err() != nil {
			continue // empty the channel: the pacer may be waiting
		}
		if late := time.Now(); late.After(r.until.Add(r.o.For)) {
			r.pacer.missed.Add(1)
			continue
		}
		err := call(ctx)
		now := time.Now()
		if ctx.Err() == nil && !due.Before(r.from) {
			own.note(now.Sub(due), err, now)
		}
	}
}

func (r *run) result(interrupted bool) Result {
	out := Result{Errors: make(map[string]int64), Latencies: newHistogram()}
	last := r.from
	for _, s := range r.shards {
		out.Latencies.Merge(s.latencies)
		for code, n := range s.errors {
			out.Errors[code] += n
			out.Failed += n
		}
		if s.firstErr != nil && out.FirstErr == nil {
			out.FirstErr = s.firstErr
		}
		if s.last.After(last) {
			last = s.last
		}
	}
	out.Calls = out.Latencies.TotalCount()
	out.Elapsed = last.Sub(r.from)
	if r.pacer != nil {
		out.Missed = r.pacer.missed.Load()
		if !interrupted { // the time of a rate does not end with its last call
			out.Elapsed = max(out.Elapsed, r.o.For)
		}
	}
	return out
}

// Rate returns the successful calls per second.
func (r *Result) Rate() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Calls) / r.Elapsed.Seconds()
}

// At returns the latency that the fraction q of the calls, 0 to 1, did not exceed.
func (r *Result) At(q float64) time.Duration {
	return time.Duration(r.Latencies.ValueAtQuantile(math.Min(q, 1) * 100))
}

// Max returns the longest latency.
func (r *Result) Max() time.Duration { return time.Duration(r.Latencies.Max()) }

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pacer generates the times at which calls are due.
type pacer struct {
	begin, until time.Time
	rate         float64
	due          chan time.Time
	missed       atomic.Int64
}

// dueAhead is the number of calls that may be due without a free caller; beyond it the pacer
// waits, and the calls are still due.
const dueAhead = 1 << 12

func newPacer(begin, until time.Time, rate float64) *pacer {
	return &pacer{begin: begin, until: until, rate: rate, due: make(chan time.Time, dueAhead)}
}

// run sends the time of each call when it is due. It occupies a thread: the runtime's own timers
// are up to a millisecond late on an idle machine, which would be measured as latency.
func (p *pacer) run(ctx context.Context) {
	defer close(p.due)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	precise()
	for n := 0; ctx.Err() == nil; n++ {
		due := p.begin.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
		if !due.Before(p.until) {
			return
		}
		for wait := time.Until(due); wait > 0; wait = time.Until(due) {
			pacerNap(min(wait, longestNap))
			if ctx.Err() != nil {
				return
			}
		}
		select {
		case p.due <- due:
		case <-ctx.Done():
			return
		}
	}
}

// longestNap bounds the interval between checks of the pacer's context.
const longestNap = 50 * time.Millisecond

// pacerNap waits for the pacer. Tests in a synctest bubble replace it, whose clock the kernel does
// not use.
var pacerNap = nap

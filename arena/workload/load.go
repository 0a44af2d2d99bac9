package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what a client program prints.
type Result struct {
	Contract   int    `json:"contract"`
	Calls      int64  `json:"calls"`
	Errors     int64  `json:"errors"`
	Wrong      int64  `json:"wrong"`
	FirstError string `json:"first_error"`
	Began      int64  `json:"began_unix_ns"`
	Ended      int64  `json:"ended_unix_ns"`
	HDR        string `json:"hdr"`
}

// The histogram of CONTRACT.md: nanoseconds.
const (
	hdrLeast  = 1
	hdrMost   = int64(60 * time.Second)
	hdrDigits = 3
)

// errorPause keeps a caller from spinning on a dead server.
const errorPause = 10 * time.Millisecond

// run is a load while it runs. The callers write their own tallies only.
type run struct {
	o      *ClientOptions
	epoch  time.Time     // of the monotonic clock that all times below are relative to
	from   time.Duration // of the measurement
	until  time.Duration // of the measurement; far away where calls are counted
	left   atomic.Int64  // calls, where they are counted
	shards []shard
}

// shard is one of a few histograms. One for each caller would be 200 KiB each, and a large heap
// makes the garbage collector's work look smaller than it is.
type shard struct {
	mu        sync.Mutex // guards histogram
	histogram *hdrhistogram.Histogram
	_         [64]byte
}

// tally is what one goroutine has seen. Padding keeps two of them off a cache line.
type tally struct {
	calls, errors, wrong int64
	first                error
	last                 time.Duration // end of the last measured call
	_                    [64]byte
}

// load calls from all callers and returns what they saw. Only an open loop needs the alarm. The
// end of ctx ends the load, but calls get the empty context: the frameworks that derive one for
// each call would otherwise meet on the lock of their parent, which no program of their users has.
func load(ctx context.Context, o *ClientOptions, open *opened, a alarm) (*Result, error) {
	r := &run{o: o, epoch: time.Now(), from: o.Warmup, until: o.Warmup + o.Measured}
	if o.Calls > 0 {
		r.until = 1 << 62
		r.left.Store(int64(o.Calls))
	}
	r.shards = make([]shard, min(o.Callers*o.Window, 2*runtime.GOMAXPROCS(0)))
	for i := range r.shards {
		r.shards[i].histogram = hdrhistogram.New(hdrLeast, hdrMost, hdrDigits)
	}
	tallies := make([]tally, o.Callers*o.Window)
	var wg sync.WaitGroup
	switch {
	case o.Rate > 0:
		if err := r.openLoop(ctx, open, a, tallies); err != nil {
			return nil, err
		}
	case open.start != nil:
		for i := range o.Callers {
			start := open.start(i)
			wg.Go(func() { r.pipeline(ctx, start, &tallies[i], r.shard(i)) })
		}
	default:
		for i := range tallies {
			call := open.one(i / o.Window)
			wg.Go(func() { r.closedLoop(ctx, call, &tallies[i], r.shard(i)) })
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	return r.result(tallies)
}

func (r *run) now() time.Duration { return time.Since(r.epoch) }

func (r *run) shard(i int) *shard { return &r.shards[i%len(r.shards)] }

// goesOn reports whether a caller makes another call at start, and takes one of the remaining
// calls.
func (r *run) goesOn(ctx context.Context, start time.Duration) bool {
	return start < r.until && ctx.Err() == nil && (r.o.Calls == 0 || start < r.from || r.left.Add(-1) >= 0)
}

// closedLoop is one caller, or one of the calls that it keeps in flight: each call starts when the
// one before it is over. The end of that is the start of this, which spares a look at the clock.
func (r *run) closedLoop(ctx context.Context, call Call, t *tally, s *shard) {
	for start := r.now(); r.goesOn(ctx, start); {
		err := call(context.Background())
		end := r.now()
		r.count(t, s, start, end, err)
		if pause(err) {
			end = r.now()
		}
		start = end
	}
}

// count enters a call that ended inside the measurement.
func (r *run) count(t *tally, s *shard, start, end time.Duration, err error) {
	counted := r.o.Calls > 0
	if counted && start < r.from || !counted && (end < r.from || end > r.until) {
		return
	}
	t.last = end
	switch {
	case err == nil:
		t.calls++
		s.mu.Lock()
		_ = s.histogram.RecordValue(min(max(int64(end-start), hdrLeast), hdrMost)) // in range
		s.mu.Unlock()
	case errors.Is(err, ErrWrong):
		t.wrong++
	default:
		t.errors++
		if t.first == nil {
			t.first = err
		}
	}
}

// pause waits after an error and says whether it did. A wrong reply took its time already.
func pause(err error) bool {
	if err == nil || errors.Is(err, ErrWrong) {
		return false
	}
	time.Sleep(errorPause)
	return true
}

func (r *run) result(tallies []tally) (*Result, error) {
	sum := &Result{Contract: Contract, Began: r.epoch.Add(r.from).UnixNano(), Ended: r.epoch.Add(r.until).UnixNano()}
	last := r.from
	for i := range tallies {
		t := &tallies[i]
		sum.Calls, sum.Errors, sum.Wrong = sum.Calls+t.calls, sum.Errors+t.errors, sum.Wrong+t.wrong
		if t.first != nil && sum.FirstError == "" {
			sum.FirstError = t.first.Error()
		}
		last = max(last, t.last)
	}
	if r.o.Calls > 0 {
		sum.Ended = r.epoch.Add(last).UnixNano()
	}
	all := hdrhistogram.New(hdrLeast, hdrMost, hdrDigits)
	for i := range r.shards {
		all.Merge(r.shards[i].histogram)
	}
	encoded, err := all.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode the histogram: %w", err)
	}
	sum.HDR = string(encoded)
	return sum, nil
}

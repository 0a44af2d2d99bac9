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

// shard is one of a few histograms. One for each caller would be 200 KiB each, and a large heap makes
// the garbage collector's work look smaller than it is.
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

// load calls from all callers and returns what they saw.
func load(ctx context.Context, o *ClientOptions, caller func(i int) Call) (*Result, error) {
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
	for i := range tallies {
		call := caller(i / o.Window)
		wg.Go(func() { r.calls(ctx, i, call, &tallies[i]) })
	}
	wg.Wait()
	return r.result(tallies)
}

// calls is one caller, or one of the calls that it keeps in flight.
func (r *run) calls(ctx context.Context, i int, call Call, t *tally) {
	n := r.o.Callers * r.o.Window
	var each, due time.Duration
	if r.o.Rate > 0 {
		each = time.Duration(float64(n) / r.o.Rate * float64(time.Second))
		due = time.Duration(float64(i) / r.o.Rate * float64(time.Second))
	}
	for ctx.Err() == nil {
		start := time.Since(r.epoch)
		if each > 0 {
			if due > start {
				time.Sleep(due - start)
			}
			start, due = due, due+each
		}
		if start >= r.until || r.o.Calls > 0 && start >= r.from && r.left.Add(-1) < 0 {
			return
		}
		err := call(ctx)
		end := time.Since(r.epoch)
		r.count(t, &r.shards[i%len(r.shards)], start, end, err)
		if err != nil && !errors.Is(err, ErrWrong) {
			time.Sleep(errorPause)
		}
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

func (r *run) result(tallies []tally) (*Result, error) {
	sum := &Result{Contract: Contract, Began: r.epoch.Add(r.from).UnixNano(), Ended: r.epoch.Add(r.until).UnixNano()}
	all := hdrhistogram.New(hdrLeast, hdrMost, hdrDigits)
	var last time.Duration
	for i := range tallies {
		t := &tallies[i]
		sum.Calls, sum.Errors, sum.Wrong = sum.Calls+t.calls, sum.Errors+t.errors, sum.Wrong+t.wrong
		if t.first != nil && sum.FirstError == "" {
			sum.FirstError = t.first.Error()
		}
		last = max(last, t.last)
	}
	for i := range r.shards {
		all.Merge(r.shards[i].histogram)
	}
	if r.o.Calls > 0 {
		sum.Ended = r.epoch.Add(last).UnixNano()
	}
	encoded, err := all.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode the histogram: %w", err)
	}
	sum.HDR = string(encoded)
	return sum, nil
}

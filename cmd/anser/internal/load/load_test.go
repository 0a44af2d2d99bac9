package load_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// caller makes callers of f.
func caller(f func(context.Context) error) func() load.Caller {
	return func() load.Caller {
		return func(ctx context.Context, _ ...anser.CallOption) error { return f(ctx) }
	}
}

func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, most, now atomic.Int64
		var began, ended atomic.Int32
		r := load.Run(t.Context(), load.Options{
			Callers: 3, Warmup: 20 * time.Millisecond, For: 100 * time.Millisecond,
			Began: func() { began.Add(1) }, Ended: func() { ended.Add(1) },
		}, caller(func(context.Context) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Millisecond) // the work
			if calls.Add(1)%5 == 0 {
				return anser.Errorf(anser.NotFound, "every fifth")
			}
			return nil
		}))
		// 3 callers make a call every millisecond, 20 of them each before the measurement.
		if calls.Load() != 3*120 || r.Calls+r.Failed != 3*100 || r.Failed != 3*100/5 {
			t.Errorf("%d calls and %d failed of %d, the warm-up included", r.Calls, r.Failed, calls.Load())
		}
		if most.Load() > 3 {
			t.Errorf("%d calls at once", most.Load())
		}
		if r.Errors["not found"] != r.Failed || !errors.Is(r.FirstErr, anser.NotFound) {
			t.Errorf("errors: %v, %v", r.Errors, r.FirstErr)
		}
		if r.Elapsed != 100*time.Millisecond || !near(r.At(.5), time.Millisecond) || !near(r.Max(), time.Millisecond) || r.Rate() != 2400 {
			t.Errorf("elapsed %v, p50 %v, max %v, %v calls/s", r.Elapsed, r.At(.5), r.Max(), r.Rate())
		}
		if began.Load() != 1 || ended.Load() != 1 {
			t.Errorf("began %d times, ended %d times", began.Load(), ended.Load())
		}
	})
}

// near reports whether a latency of the histogram, which has 3 digits, equals d.
func near(got, d time.Duration) bool { return (got - d).Abs() <= d/1000+1 }

// A delayed call also delays the calls after it, and their latencies show it.
func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load.NapInBubble(t)
		var calls atomic.Int64
		r := load.Run(t.Context(), load.Options{Callers: 1, Rate: 100, For: 300 * time.Millisecond},
			caller(func(context.Context) error {
				if calls.Add(1) == 1 {
					time.Sleep(150 * time.Millisecond) // the work
				}
				return nil
			}))
		if r.Calls != 30 || r.Missed != 0 || r.Elapsed != 300*time.Millisecond {
			t.Errorf("%d calls, %d missed in %v", r.Calls, r.Missed, r.Elapsed)
		}
		// 15 calls were due while the first one ran, and waited for 140 ms, 130 ms and so on.
		if p := r.At(.8); !near(p, 90*time.Millisecond) {
			t.Errorf("p80 is %v", p)
		}
	})
}

func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load.NapInBubble(t)
		r := load.Run(t.Context(), load.Options{Callers: 1, Rate: 10_000, For: 50 * time.Millisecond},
			caller(func(context.Context) error {
				time.Sleep(2 * time.Millisecond) // the work
				return nil
			}))
		// Calls are started for as long again as calls are due, the last one at the very end.
		if r.Calls != 51 || r.Calls+r.Missed != 500 {
			t.Errorf("%d calls and %d missed of 500", r.Calls, r.Missed)
		}
	})
}

func TestInterrupted(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int64
		r := load.Run(ctx, load.Options{Callers: 2, Rate: rate, For: time.Hour}, caller(func(ctx context.Context) error {
			if calls.Add(1) == 20 {
				cancel()
			}
			return ctx.Err()
		}))
		if r.Failed != 0 || r.Calls == 0 {
			t.Errorf("rate %g: %d calls, %d failed", rate, r.Calls, r.Failed)
		}
	}
}

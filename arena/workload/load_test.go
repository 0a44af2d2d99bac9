package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// bubbleAlarm is an alarm on the clock of a synctest bubble.
type bubbleAlarm struct{ closed chan struct{} }

func newBubbleAlarm() *bubbleAlarm { return &bubbleAlarm{make(chan struct{})} }

func (s *bubbleAlarm) wait(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.closed:
		return os.ErrClosed
	}
}

func (s *bubbleAlarm) close() { close(s.closed) }

// of returns what a load gets from Open.
func of(call Call) *opened { return &opened{call: func(int) Call { return call }} }

// took is a Call that takes d.
func took(d time.Duration) Call {
	return func(context.Context) error { time.Sleep(d); return nil }
}

// seconds returns the options of a load of one second after another one of warm-up.
func seconds(callers int) *ClientOptions {
	return &ClientOptions{Callers: callers, Window: 1, Warmup: time.Second, Measured: time.Second}
}

func measure(t *testing.T, o *ClientOptions, open *opened) (*Result, *hdrhistogram.Histogram) {
	t.Helper()
	r, err := load(t.Context(), o, open, newBubbleAlarm())
	if err != nil {
		t.Fatal(err)
	}
	h, err := hdrhistogram.Decode([]byte(r.HDR))
	if err != nil {
		t.Fatal(err)
	}
	if h.TotalCount() != r.Calls || h.LowestTrackableValue() != hdrLeast || h.HighestTrackableValue() != hdrMost {
		t.Errorf("%d calls in a histogram from %d to %d, and %d in the result", h.TotalCount(), h.LowestTrackableValue(), h.HighestTrackableValue(), r.Calls)
	}
	return r, h
}

// near says whether a latency of the histogram, which has 3 digits, is d.
func near(ns int64, d time.Duration) bool {
	return ns >= int64(d)-int64(d)/1000-1 && ns <= int64(d)+int64(d)/1000+1
}

func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r, h := measure(t, seconds(7), of(took(10*time.Millisecond)))
		// 7 callers end a call every 10 ms, the first of the measurement at its very begin.
		if r.Calls != 7*101 || r.Errors != 0 || r.Wrong != 0 || r.FirstError != "" || r.Contract != Contract {
			t.Errorf("result %+v", r)
		}
		if !near(h.Min(), 10*time.Millisecond) || !near(h.Max(), 10*time.Millisecond) {
			t.Errorf("latencies from %d to %d ns, want 10 ms", h.Min(), h.Max())
		}
		if r.Began != began.Add(time.Second).UnixNano() || r.Ended != began.Add(2*time.Second).UnixNano() {
			t.Errorf("measured from %d to %d, began at %d", r.Began, r.Ended, began.UnixNano())
		}
	})
}

// A window of a synchronous peer means that number of goroutines.
func TestClosedLoopWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := seconds(2)
		o.Window = 3
		of2 := make(map[int]int)
		r, _ := measure(t, o, &opened{call: func(i int) Call { of2[i]++; return took(10 * time.Millisecond) }})
		if r.Calls != 6*101 || of2[0] != 3 || of2[1] != 3 {
			t.Errorf("%d calls, callers %v", r.Calls, of2)
		}
	})
}

func TestWrongAndErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r, h := measure(t, seconds(1), of(func(context.Context) error {
			time.Sleep(10 * time.Millisecond)
			n++
			switch n % 4 {
			case 0:
				return fmt.Errorf("add: %w", ErrWrong)
			case 1:
				return errors.New("broken")
			}
			return nil
		}))
		// Four calls of 10 ms and a pause of 10 ms after the error: 20 times in the second.
		if r.Calls+r.Wrong+r.Errors < 80 || r.Calls+r.Wrong+r.Errors > 81 || r.Wrong < 20 || r.Wrong > 21 || r.Errors != 20 || r.FirstError != "broken" {
			t.Errorf("result %+v", r)
		}
		if !near(h.Max(), 10*time.Millisecond) {
			t.Errorf("a latency of %d ns: the pause after an error is in it", h.Max())
		}
	})
}

// A caller whose calls fail at once does not spin.
func TestErrorsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0, 1e6} {
			o := seconds(1)
			o.Rate = rate
			r, _ := measure(t, o, of(func(context.Context) error { return errors.New("no connection") }))
			if r.Calls != 0 || r.Errors < 99 || r.Errors > 101 || r.FirstError != "no connection" {
				t.Errorf("rate %v: %+v", rate, r)
			}
		}
	})
}

func TestCountedCalls(t *testing.T) {
	for _, test := range []struct {
		name string
		o    ClientOptions
		took time.Duration // of the measurement
	}{
		{"closed", ClientOptions{Callers: 4, Window: 1}, 250 * time.Millisecond},
		{"warmed", ClientOptions{Callers: 4, Window: 1, Warmup: time.Second}, 250 * time.Millisecond},
		{"window", ClientOptions{Callers: 2, Window: 2}, 250 * time.Millisecond},
		// The 100th call starts after 99 periods. The other callers do not wait for their turns.
		{"open", ClientOptions{Callers: 4, Window: 1, Rate: 100}, 1000 * time.Millisecond},
		{"open with many callers", ClientOptions{Callers: 1000, Window: 1, Rate: 100}, 1000 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.o.Calls = 100
				var all atomic.Int64
				began := time.Now()
				r, _ := measure(t, &test.o, of(func(context.Context) error {
					time.Sleep(10 * time.Millisecond)
					all.Add(1)
					return nil
				}))
				if r.Calls != 100 || test.o.Warmup == 0 && all.Load() != 100 {
					t.Errorf("%d calls of %d counted, want 100", r.Calls, all.Load())
				}
				if r.Began != began.Add(test.o.Warmup).UnixNano() || r.Ended-r.Began != int64(test.took) {
					t.Errorf("took %v, want %v", time.Duration(r.Ended-r.Began), test.took)
				}
				if over := time.Since(began) - test.o.Warmup - test.took; over != 0 {
					t.Errorf("the load ended %v after the last call", over)
				}
			})
		})
	}
}

// Each call starts at its moment, and those of all callers are evenly spread.
func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := seconds(10)
		o.Rate = 1000
		began := time.Now()
		var mu sync.Mutex
		var starts []time.Duration
		r, h := measure(t, o, of(func(context.Context) error {
			mu.Lock()
			starts = append(starts, time.Since(began))
			mu.Unlock()
			time.Sleep(5 * time.Millisecond)
			return nil
		}))
		// The calls that end from 1 s to 2 s, inclusive; the call of 1.995 s ends at 2 s.
		if r.Calls != 1001 || !near(h.Min(), 5*time.Millisecond) || !near(h.Max(), 5*time.Millisecond) {
			t.Errorf("%d calls of %d to %d ns", r.Calls, h.Min(), h.Max())
		}
		if len(starts) != 2000 {
			t.Fatalf("%d calls started", len(starts))
		}
		for i, at := range starts {
			if want := time.Duration(i) * time.Millisecond; at < want || at > want+leastTick {
				t.Fatalf("call %d started after %v", i, at)
			}
		}
	})
}

// At a rate of more than one call a tick no call is lost, and none starts before its moment.
func TestOpenLoopFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := seconds(10)
		o.Rate = 100_000
		r, h := measure(t, o, of(func(context.Context) error { return nil }))
		if r.Calls < 100_000-10 || r.Calls > 100_000+10 || h.Max() > int64(leastTick)*1001/1000 {
			t.Errorf("%d calls, the latest of %d ns", r.Calls, h.Max())
		}
	})
}

// A server that stalls for 300 ms shows: calls that were due meanwhile have waited for it.
func TestOpenLoopStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		o := seconds(2)
		o.Rate = 100
		r, h := measure(t, o, of(func(context.Context) error {
			if at := time.Since(began); at >= 1300*time.Millisecond && at < 1600*time.Millisecond {
				time.Sleep(1600*time.Millisecond - at)
				return nil
			}
			time.Sleep(time.Millisecond)
			return nil
		}))
		if r.Calls != 100 {
			t.Errorf("%d calls, want all that were due", r.Calls)
		}
		// The calls of both callers that were due at 1.3 s, 1.31 s, … 1.59 s wait for the end of
		// the stall and then for each other, 1 ms each; so does that of 1.6 s.
		late := 0
		for _, bar := range h.Distribution() {
			if bar.From > int64(9*time.Millisecond) {
				late += int(bar.Count)
			}
		}
		if !near(h.Max(), 300*time.Millisecond) || late != 31 {
			t.Errorf("%d late calls, the latest of %v; want 31 and 300ms", late, time.Duration(h.Max()))
		}
	})
}

// A server that is too slow for the rate does not prolong the measurement.
func TestOpenLoopOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		o := seconds(1)
		o.Rate = 1000
		r, h := measure(t, o, of(took(10*time.Millisecond)))
		if r.Calls != 101 || h.Max() < int64(1700*time.Millisecond) {
			t.Errorf("%d calls, the latest of %v", r.Calls, time.Duration(h.Max()))
		}
		if d := time.Since(began); d > 2010*time.Millisecond {
			t.Errorf("the load took %v", d)
		}
	})
}

// Few calls for many callers: idle callers keep the load neither from ending nor from running.
func TestOpenLoopSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for rate, calls := range map[float64]int64{10: 10, 0.1: 0} {
			began := time.Now()
			o := seconds(100)
			o.Rate = rate
			r, _ := measure(t, o, of(took(time.Millisecond)))
			if d := time.Since(began); r.Calls != calls || d != 2*time.Second {
				t.Errorf("rate %v: %d calls in %v", rate, r.Calls, d)
			}
		}
	})
}

// Calls have the deadline from when they were due; what comes later is not a reply, and the rate
// stays.
func TestOpenLoopDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := seconds(10)
		o.Rate, o.Deadline = 100, 20*time.Millisecond
		var made atomic.Int64
		r, _ := measure(t, o, of(func(ctx context.Context) error {
			end, ok := ctx.Deadline()
			if left := time.Until(end); !ok || left > o.Deadline || left < o.Deadline-leastTick {
				t.Errorf("a call begins with %v left", left)
			}
			switch made.Add(1) % 4 {
			case 0:
				time.Sleep(25 * time.Millisecond) // comes too late, and does not look at its context
				return nil
			case 1:
				return errors.New("refused")
			case 2:
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(15 * time.Millisecond)
			return nil
		}))
		if made.Load() != 200 {
			t.Errorf("%d calls were made, want 200", made.Load())
		}
		if r.Calls != 25 || r.Errors < 74 || r.Errors > 76 {
			t.Errorf("%d good calls and %d errors, want 25 and 75", r.Calls, r.Errors)
		}
	})
}

func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &ServerOptions{Sleep: time.Second, slots: make(chan struct{}, 2)}
		began := time.Now()
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(o.Delay)
		}
		wg.Wait()
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("6 calls of 1 s with 2 slots took %v, want 3 s", d)
		}
	})
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0, 0.1, 100} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			o := seconds(3)
			o.Rate = rate
			if _, err := load(ctx, o, of(took(time.Millisecond)), newBubbleAlarm()); err == nil {
				t.Errorf("rate %v: a result without an end", rate)
			}
			if d := time.Since(began); d > 1510*time.Millisecond {
				t.Errorf("rate %v: ended after %v", rate, d)
			}
			cancel()
		}
	})
}

// An alarm that fails ends the load: the callers would never be woken.
func TestAlarmFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := seconds(3)
		o.Rate = 10
		if _, err := load(t.Context(), o, of(took(time.Millisecond)), broken{}); !errors.Is(err, errBroken) {
			t.Errorf("error %v", err)
		}
	})
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) wait(time.Duration) error { return errBroken }
func (broken) close()                   {}

// The harness itself, for a call that costs nothing.
func BenchmarkClosedLoop(b *testing.B) {
	b.ReportAllocs()
	o := &ClientOptions{Callers: 1, Window: 1, Calls: b.N}
	if _, err := load(b.Context(), o, of(func(context.Context) error { return nil }), nil); err != nil {
		b.Fatal(err)
	}
}

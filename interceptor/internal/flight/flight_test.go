package flight_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/interceptor/internal/flight"
)

type group = flight.Group[string, int]

// working returns a work that waits for d, or until its context ends, and counts.
func working(runs *atomic.Int64, d time.Duration, v int) func() flight.Work[int] {
	return func() flight.Work[int] {
		return func(ctx context.Context) int {
			runs.Add(1)
			select {
			case <-time.After(d):
				return v
			case <-ctx.Done():
				return -1
			}
		}
	}
}

func TestOneWorkForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g group
		var runs, joins atomic.Int64
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				key := []string{"a", "b"}[i%2]
				v, ride, err := g.Do(t.Context(), key, 0, working(&runs, time.Second, 7))
				if v != 7 || err != nil {
					t.Error(v, err)
				}
				if ride.Joined {
					joins.Add(1)
				}
			})
		}
		wg.Wait()
		if runs.Load() != 2 || joins.Load() != 98 {
			t.Error(runs.Load(), "runs,", joins.Load(), "joined")
		}
		if _, ride, _ := g.Do(t.Context(), "a", 0, working(&runs, 0, 7)); ride.Joined || ride.Cut || runs.Load() != 3 {
			t.Error("what is over was joined")
		}
	})
}

// The work continues when its first caller has left, and ends with the last one.
func TestWaitersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g group
		var runs atomic.Int64
		wait := func(d time.Duration, want int, fails error) func() {
			return func() {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				began := time.Now()
				v, _, err := g.Do(ctx, "k", 0, working(&runs, 10*time.Second, 7))
				if v != want || !errors.Is(err, fails) {
					t.Errorf("after %v: %d, %v", d, v, err)
				}
				if took := time.Since(began); fails != nil && took != d {
					t.Errorf("left after %v instead of %v", took, d)
				}
			}
		}
		var wg sync.WaitGroup
		wg.Go(wait(time.Second, 0, context.DeadlineExceeded)) // starts it
		synctest.Wait()
		wg.Go(wait(time.Minute, 7, nil))
		wg.Go(wait(2*time.Second, 0, context.DeadlineExceeded))
		wg.Wait()
		if runs.Load() != 1 {
			t.Error(runs.Load(), "runs")
		}
		wg.Go(wait(time.Second, 0, context.DeadlineExceeded))
		wg.Wait()
		synctest.Wait() // the work has ended, or the bubble would wait for it
		wg.Go(wait(time.Minute, 7, nil))
		wg.Wait()
		if runs.Load() != 3 {
			t.Error("who came after the last one had gone did not begin anew:", runs.Load(), "runs")
		}
	})
}

func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g group
		var runs atomic.Int64
		if v, ride, err := g.Do(t.Context(), "k", time.Second, working(&runs, time.Hour, 7)); v != -1 || err != nil || !ride.Cut {
			t.Error(v, err)
		}
	})
}

// The work sees the values of the context that started it.
func TestValues(t *testing.T) {
	var g group
	type k struct{}
	ctx := context.WithValue(t.Context(), k{}, 5)
	if v, _, err := g.Do(ctx, "k", 0, func() flight.Work[int] {
		return func(ctx context.Context) int { return ctx.Value(k{}).(int) }
	}); v != 5 || err != nil {
		t.Error(v, err)
	}
}

// A panic, in the work or before it, is raised in every caller, and has no other effect.
func TestPanicReachesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g group
		var caught atomic.Int64
		var wg sync.WaitGroup
		for _, prepare := range []func() flight.Work[int]{
			func() flight.Work[int] {
				return func(context.Context) int {
					time.Sleep(time.Second)
					panic("broken")
				}
			},
			func() flight.Work[int] {
				time.Sleep(time.Second)
				panic("broken")
			},
		} {
			caught.Store(0)
			for range 5 {
				wg.Go(func() {
					defer func() {
						if p, ok := recover().(*flight.Panic); ok && p.Value == "broken" && strings.Contains(p.String(), "flight_test.go") {
							caught.Add(1)
						}
					}()
					g.Do(t.Context(), "k", 0, prepare)
				})
			}
			wg.Wait()
			if caught.Load() != 5 {
				t.Errorf("%d of 5 panicked", caught.Load())
			}
		}
	})
}

func TestExitReachesAll(t *testing.T) {
	var g group
	_, _, err := g.Do(t.Context(), "k", 0, func() flight.Work[int] {
		return func(context.Context) int {
			runtime.Goexit()
			return 0
		}
	})
	if !errors.Is(err, flight.ErrExited) {
		t.Error(err)
	}
}

func TestStartAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g group
		var runs atomic.Int64
		if !g.Start(t.Context(), "k", 0, working(&runs, time.Hour, 7)) || g.Start(t.Context(), "k", 0, working(&runs, time.Hour, 7)) {
			t.Error("Start")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ride, err := g.Do(ctx, "k", 0, nil); !ride.Joined || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(ride, err)
		}
		done := make(chan int)
		go func() {
			v, _, _ := g.Do(t.Context(), "k", 0, nil) // the work continues although the previous one was abandoned
			done <- v
		}()
		synctest.Wait()
		g.Close()
		g.Close()
		if v := <-done; v != -1 || runs.Load() != 1 {
			t.Error(v, runs.Load())
		}
		if _, _, err := g.Do(t.Context(), "k", 0, working(&runs, 0, 7)); !errors.Is(err, flight.ErrClosed) {
			t.Error(err)
		}
		if g.Start(t.Context(), "k", 0, working(&runs, 0, 7)) {
			t.Error("a closed group starts")
		}
	})
}

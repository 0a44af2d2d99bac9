package workload

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// futures returns an asynchronous API whose calls take d, and which counts those in flight.
func futures(d time.Duration, most *int) *opened {
	var mu sync.Mutex // guards flying and most
	flying := 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		flying += n
		*most = max(*most, flying)
	}
	return &opened{start: func(int) Start {
		return func(context.Context) func() error {
			count(1)
			done := time.After(d)
			return func() error {
				<-done
				count(-1)
				return nil
			}
		}
	}}
}

func TestPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := seconds(1)
		o.Window = 5
		most := 0
		r, h := measure(t, o, futures(10*time.Millisecond, &most))
		if r.Calls != 5*101 || most != 5 || !near(h.Min(), 10*time.Millisecond) || !near(h.Max(), 10*time.Millisecond) {
			t.Errorf("%d calls of %d to %d ns, at most %d at a time", r.Calls, h.Min(), h.Max(), most)
		}
	})
}

func TestPipelineCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &ClientOptions{Callers: 1, Window: 16, Calls: 100}
		most := 0
		r, _ := measure(t, o, futures(10*time.Millisecond, &most))
		if r.Calls != 100 || r.Ended-r.Began != int64(70*time.Millisecond) || most != 16 {
			t.Errorf("%d calls in %v, at most %d at a time", r.Calls, time.Duration(r.Ended-r.Began), most)
		}
	})
}

// In the open loop each call has its own moment, so futures are waited for one by one.
func TestPipelineOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := seconds(1)
		o.Window, o.Rate = 4, 100
		most := 0
		r, h := measure(t, o, futures(30*time.Millisecond, &most))
		if r.Calls != 101 || !near(h.Max(), 30*time.Millisecond) {
			t.Errorf("%d calls, the latest of %d ns", r.Calls, h.Max())
		}
	})
}

func TestPipelineErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := seconds(1)
		o.Window = 3
		r, _ := measure(t, o, &opened{start: func(int) Start {
			return func(context.Context) func() error { return func() error { return errors.New("no connection") } }
		}})
		if r.Calls != 0 || r.Errors < 99 || r.Errors > 101 || r.FirstError != "no connection" {
			t.Errorf("result %+v", r)
		}
	})
}

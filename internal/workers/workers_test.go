package workers_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/workers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type job struct {
	run  func()
	next *job
}

func execute(j *job) *job {
	j.run()
	return j.next
}

// Jobs run at once, each on a worker of its own, and workers that are idle run the next ones.
func TestWorkersAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := workers.New(4, execute, nil)
		before := runtime.NumGoroutine()
		for range 3 {
			var waiting sync.WaitGroup
			release := make(chan bool)
			for range 100 {
				waiting.Add(1)
				all.Do(2, &job{run: func() { waiting.Done(); <-release }})
			}
			waiting.Wait()
			close(release)
			synctest.Wait()
			if n := runtime.NumGoroutine() - before; n != 100 {
				t.Errorf("%d workers after 100 jobs at once, want 100", n)
			}
		}
		for range 10 { // the fewest idle ones since the last Trim were none, then all, then half of them
			all.Trim()
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n != 0 {
			t.Errorf("%d workers are left that nothing needs", n)
		}
		all.Close()
	})
}

// A worker executes what a job returns before it takes another one.
func TestNextJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := workers.New(1, execute, nil)
		var order []int
		all.Do(0, &job{run: func() { order = append(order, 1) }, next: &job{run: func() { order = append(order, 2) }}})
		synctest.Wait()
		if len(order) != 2 || order[0] != 1 || order[1] != 2 {
			t.Errorf("jobs ran in the order %v, want 1 and 2", order)
		}
		all.Close()
	})
}

// Workers that rest end after their jobs, and Close waits for those at work.
func TestRestAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := workers.New(2, execute, nil)
		before := runtime.NumGoroutine()
		all.Do(0, &job{run: func() {}})
		synctest.Wait()
		all.Rest(true)
		all.Do(1, &job{run: func() {}})
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n != 0 {
			t.Errorf("%d workers rest in vain", n)
		}
		all.Rest(false)
		done, release := false, make(chan bool)
		all.Do(0, &job{run: func() { <-release; done = true }})
		go close(release)
		all.Close()
		if !done {
			t.Error("Close returned before the last job had")
		}
	})
}

// A job that ends its goroutine ends its worker, and the others go on.
func TestExit(t *testing.T) {
	all := workers.New(1, execute, nil)
	all.Do(0, &job{run: runtime.Goexit})
	ran := make(chan bool)
	all.Do(0, &job{run: func() { close(ran) }})
	<-ran
	all.Close()
}

package upkeep_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is an object that is maintained.
type thing struct {
	task upkeep.Task
	next func(now mono.Time) mono.Time // what a run returns
	ran  []time.Duration
}

func (th *thing) run(now, was mono.Time) mono.Time {
	th.ran = append(th.ran, now.Sub(was))
	return th.next(now)
}

// runs returns by how much each run so far was late.
func (th *thing) runs() []time.Duration {
	synctest.Wait()
	return th.ran
}

func never(mono.Time) mono.Time { return upkeep.Never }

func every(d time.Duration) func(mono.Time) mono.Time {
	return func(now mono.Time) mono.Time { return now.Add(d) }
}

// start adds n things to a schedule, due after a first time.
func start(s *upkeep.Schedule, n int, first time.Duration, next func(mono.Time) mono.Time) []*thing {
	due := upkeep.Never
	if first != 0 {
		due = mono.Now().Add(first)
	}
	all := make([]*thing, n)
	for i := range all {
		all[i] = &thing{next: next}
		s.Add(&all[i].task, due, all[i].run)
	}
	return all
}

func TestTasksRunInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s upkeep.Schedule
		defer s.Close()
		var all []*thing
		for i := range 500 {
			all = append(all, start(&s, 1, time.Duration(i)*7*time.Millisecond, every(time.Duration(i)*11*time.Millisecond+time.Second))...)
		}
		time.Sleep(time.Minute)
		for i, th := range all[1:] {
			for _, late := range th.runs() {
				if late < 0 || late > upkeep.Slack {
					t.Fatalf("task %d ran %v after it was due", i+1, late)
				}
			}
			period := time.Duration(i+1)*11*time.Millisecond + time.Second
			if least := int(time.Minute / (period + upkeep.Slack)); len(th.runs()) < least {
				t.Fatalf("task %d ran %d times, want %d", i+1, len(th.runs()), least)
			}
		}
	})
}

func TestTasksThatRestDoNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s upkeep.Schedule
		defer s.Close()
		all := start(&s, 100, time.Second, never)
		time.Sleep(time.Hour)
		if n := s.Runs(); n != 100 {
			t.Fatalf("%d runs in an hour, want one for each task", n)
		}
		all[7].task.Stir()
		all[7].task.Stir()
		time.Sleep(upkeep.Interval + upkeep.Slack)
		synctest.Wait()
		if n := s.Runs(); n != 101 || len(all[7].runs()) != 2 {
			t.Fatalf("%d runs after a task was stirred, want one more", n)
		}
	})
}

// A task that is stirred during its run runs again, whatever that run returns.
func TestStirDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s upkeep.Schedule
		defer s.Close()
		th := new(thing)
		th.next = func(now mono.Time) mono.Time {
			if len(th.ran) < 3 {
				th.task.Stir()
			}
			return upkeep.Never
		}
		s.Add(&th.task, mono.Now(), th.run)
		time.Sleep(time.Minute)
		if len(th.runs()) != 3 {
			t.Errorf("%d runs, want 3", len(th.runs()))
		}
	})
}

func TestBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s upkeep.Schedule
		defer s.Close()
		th := start(&s, 1, 10*time.Second, never)[0]
		th.task.By(mono.Now().Add(20 * time.Second)) // later: nothing changes
		th.task.By(mono.Now().Add(2 * time.Second))
		time.Sleep(2 * time.Second)
		if n := s.Runs(); n != 0 {
			t.Fatalf("%d runs too early", n)
		}
		time.Sleep(upkeep.Slack)
		synctest.Wait()
		if n := s.Runs(); n != 1 {
			t.Fatalf("%d runs, want 1", n)
		}
		time.Sleep(time.Minute)
		if n := s.Runs(); n != 1 {
			t.Fatalf("%d runs, want 1", n)
		}
	})
}

// Times that are too large for a timer, and tasks that are always due.
func TestExtremeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s upkeep.Schedule
		defer s.Close()
		start(&s, 1, time.Second, func(mono.Time) mono.Time { return upkeep.Never.Add(-1) })
		busy := start(&s, 1, time.Second, func(mono.Time) mono.Time { return 0 })[0]
		time.Sleep(10 * time.Second)
		s.Remove(&busy.task)
		if n := len(busy.runs()); n < 10 || n > 100 {
			t.Errorf("a task that is always due ran %d times in 10 s", n)
		}
	})
}

func TestRemoveAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s upkeep.Schedule
		all := start(&s, 10, time.Second, every(time.Second))
		time.Sleep(5 * time.Second)
		s.Remove(&all[3].task)
		s.Remove(&all[3].task)
		all[3].task.Stir()
		all[3].task.By(0)
		n := len(all[3].runs())
		time.Sleep(5 * time.Second)
		if len(all[3].runs()) != n || len(all[4].runs()) <= n {
			t.Errorf("%d runs of a task that was removed, %d before; %d of another one", len(all[3].runs()), n, len(all[4].runs()))
		}
		s.Close()
		before := s.Runs()
		start(&s, 1, time.Second, never)
		all[4].task.By(0)
		s.Remove(&all[5].task)
		time.Sleep(time.Minute)
		if after := s.Runs(); after != before {
			t.Errorf("%d runs after Close", after-before)
		}
	})
}

// A task that was removed may be added again, also while it still runs.
func TestAddAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s upkeep.Schedule
		defer s.Close()
		th := new(thing)
		th.next = func(mono.Time) mono.Time {
			if len(th.ran) == 1 {
				time.Sleep(2 * time.Second)
			}
			return upkeep.Never
		}
		s.Add(&th.task, mono.Now(), th.run)
		time.Sleep(time.Second) // it runs
		s.Remove(&th.task)
		s.Add(&th.task, mono.Now().Add(5*time.Second), th.run)
		time.Sleep(time.Minute)
		if n := len(th.runs()); n != 2 {
			t.Fatalf("%d runs, want 2", n)
		}
		s.Remove(&th.task)
		s.Add(&th.task, mono.Now().Add(time.Second), th.run)
		time.Sleep(time.Minute)
		if n := len(th.runs()); n != 3 {
			t.Errorf("%d runs, want 3", n)
		}
	})
}

// Close and Wait wait for a task that runs.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s upkeep.Schedule
		var over atomic.Bool
		start(&s, 1, time.Second, func(mono.Time) mono.Time {
			time.Sleep(3 * time.Second)
			over.Store(true)
			return upkeep.Never
		})
		time.Sleep(2 * time.Second)
		var wg sync.WaitGroup
		for _, wait := range []func(){s.Close, s.Wait} {
			wg.Go(func() {
				wait()
				if !over.Load() {
					t.Error("a task still runs")
				}
			})
		}
		wg.Wait()
		s.Wait() // nothing runs
	})
}

// Whatever many goroutines do at once, no activity is missed: a task runs within Interval and Slack
// of the last one.
func TestNoActivityIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks = 50
		var s upkeep.Schedule
		defer s.Close()
		var active, seen [tasks]atomic.Int64
		var all [tasks]upkeep.Task
		for i := range all {
			s.Add(&all[i], mono.Now().Add(time.Second), func(now, _ mono.Time) mono.Time {
				seen[i].Store(active[i].Load())
				switch r := rand.IntN(10); {
				case r < 3:
					return now.Add(rand.N(5 * time.Second))
				case r < 5:
					time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
				}
				return upkeep.Never
			})
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 500 {
					i := rand.IntN(tasks)
					active[i].Add(1)
					all[i].Stir()
					time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		time.Sleep(upkeep.Interval + upkeep.Slack + tasks*20*time.Millisecond)
		for i := range all {
			if seen[i].Load() != active[i].Load() {
				t.Errorf("task %d has seen %d of %d", i, seen[i].Load(), active[i].Load())
			}
		}
	})
}

func BenchmarkStirOfAnActiveTask(b *testing.B) {
	var t upkeep.Task
	for b.Loop() {
		t.Stir()
	}
}

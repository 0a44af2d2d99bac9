package limiter_test

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser/internal/limiter"
	"github.com/anser-rpc/anser/internal/mono"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is a waiter that tells a function what happens to it.
type call struct {
	name  string
	event func(name, what string)
}

func (c *call) Admit(mono.Time) { c.event(c.name, "runs") }

func (c *call) Refuse(why limiter.Reason) {
	c.event(c.name, map[limiter.Reason]string{limiter.Full: "full", limiter.Late: "late"}[why])
}

// log collects the events of calls.
type log struct {
	mu     sync.Mutex // guards events
	events []string
}

func (l *log) call(name string) *call {
	return &call{name, func(name, what string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.events = append(l.events, name+" "+what)
	}}
}

// expect compares the events since the last call with want.
func (l *log) expect(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.events, want) {
		t.Errorf("events %q, want %q", l.events, want)
	}
	l.events = nil
}

// one returns a limiter with one place, which is taken, and four levels.
func one(t *testing.T, maxWait time.Duration) *limiter.Limiter[*call] {
	l := limiter.New[*call](limiter.Config{Least: 1, Most: 1, MaxWait: maxWait, Levels: 4})
	if !l.TryAcquire() || l.TryAcquire() {
		t.Fatal("a limiter with one place does not give it out once")
	}
	return l
}

func TestHigherLevelsGoFirst(t *testing.T) {
	var got log
	l := one(t, time.Hour)
	for _, c := range []struct {
		name  string
		level int
	}{{"a", 1}, {"b", 0}, {"c", 3}, {"d", 1}, {"e", 3}} {
		l.Enqueue(got.call(c.name), c.level)
	}
	if s := l.Stats(); s != (limiter.Stats{Limit: 1, Running: 1, Room: 16, Waiting: 5}) {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{"c", "e", "a", "d", "b"} {
		l.Release()
		if w, _, ok := l.Next(); !ok || w.name != want {
			t.Fatalf("%v is next, want %s", w, want)
		}
	}
	l.Release()
	if _, _, ok := l.Next(); ok || l.Stats().Running != 0 {
		t.Error("a call is left")
	}
	got.expect(t)
}

// A free place that no goroutine has asked Next for goes to the call that comes.
func TestEnqueueTakesAFreePlace(t *testing.T) {
	var got log
	l := one(t, time.Hour)
	l.Release()
	l.Enqueue(got.call("a"), 1)
	got.expect(t, "a runs")
	if s := l.Stats(); s.Running != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

func TestFullQueueRefusesTheLowestLevel(t *testing.T) {
	var got log
	l := one(t, time.Hour)
	for range l.Stats().Room - 1 {
		l.Enqueue(got.call("early"), 1)
	}
	if l.Crowded(0) {
		t.Error("a queue with room is crowded")
	}
	l.Enqueue(got.call("last"), 1)
	for level, want := range []bool{true, true, false, false} {
		if got := l.Crowded(level); got != want {
			t.Errorf("crowded at level %d: %t", level, got)
		}
	}
	l.Enqueue(got.call("same"), 1)
	l.Enqueue(got.call("lower"), 0)
	got.expect(t, "same full", "lower full")
	l.Enqueue(got.call("higher"), 2)
	got.expect(t, "last full")
	if s := l.Stats(); s.Waiting != s.Room {
		t.Errorf("%+v", s)
	}
}

func TestLateCallsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got log
		l := one(t, time.Second)
		l.Enqueue(got.call("a"), 1)
		time.Sleep(900 * time.Millisecond)
		l.Enqueue(got.call("b"), 1)
		time.Sleep(200 * time.Millisecond)
		l.Release()
		if w, now, ok := l.Next(); !ok || w.name != "b" || now != mono.Now() {
			t.Errorf("%v is next, want the call that is not late", w)
		}
		got.expect(t, "a late")
		l.Enqueue(got.call("c"), 3)
		time.Sleep(time.Minute) // no place becomes free
		synctest.Wait()
		got.expect(t, "c late")
	})
}

// A call is not counted as waiting any more when it is admitted or refused: it may end at once,
// and its caller may look at the numbers.
func TestCalledWaitersDoNotCount(t *testing.T) {
	l := one(t, time.Nanosecond)
	var calls []string
	check := func(_, what string) {
		calls = append(calls, what)
		if n := l.Stats().Waiting; n != 0 {
			t.Errorf("%d calls wait while the only one of them gets: %s", n, what)
		}
	}
	l.Release()
	l.Enqueue(&call{"", check}, 1)
	l.Enqueue(&call{"", check}, 1)
	for l.Stats().Waiting != 0 { // until the second one is late
		runtime.Gosched()
	}
	l.Next() // returns after Refuse
	if !slices.Equal(calls, []string{"runs", "late"}) {
		t.Errorf("%q", calls)
	}
}

// Next returns after a call that another goroutine hands over at the moment.
func TestNextCoversHandovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := one(t, time.Second)
		var returned atomic.Bool
		var wg sync.WaitGroup
		called := false
		l.Enqueue(&call{"a", func(string, string) {
			called = true
			wg.Go(func() { l.Next(); returned.Store(true) })
			for range 1000 {
				runtime.Gosched()
			}
			if returned.Load() {
				t.Error("Next returned before the call was refused")
			}
		}}, 1)
		time.Sleep(2 * time.Second)
		wg.Wait()
		if !called {
			t.Error("the late call was not refused")
		}
	})
}

func TestLimitAdapts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limits []int64
		l := limiter.New[*call](limiter.Config{Least: 2, Most: 64, Levels: 1, MaxWait: time.Hour, Changed: func(limit, room int64) {
			limits = append(limits, limit)
		}})
		var class limiter.Class
		l.AddClass(&class)
		// Calls take the longer the more of them run, as if two made progress at a time.
		var got log
		for range 300 {
			for l.TryAcquire() {
			}
			l.Enqueue(got.call("held back"), 0)
			n := l.Stats().Running
			d := time.Duration(max(n, 2)) * time.Millisecond / 2
			time.Sleep(100 * time.Millisecond)
			for range n {
				l.Record(&class, d, mono.Now())
			}
			for range n + 1 {
				l.Release()
				l.Next()
			}
		}
		last := limits[len(limits)/2:]
		if low, high := slices.Min(last), slices.Max(last); low < 1 || high > 24 {
			t.Errorf("the limit is %d to %d with two calls that make progress", low, high)
		}
		if d := l.Usual(&class); d < time.Millisecond/2 || d > 4*time.Millisecond {
			t.Errorf("a call takes %v, want about a millisecond", d)
		}
	})
}

// Whatever many goroutines do at once, each call is called once, and no more than the limit run.
func TestConcurrentCalls(t *testing.T) {
	const limit = 4
	l := limiter.New[*call](limiter.Config{Least: limit, Most: limit, MaxWait: time.Hour, Levels: 4})
	var running, ran, refused atomic.Int64
	var work, calls sync.WaitGroup
	run := func() {
		defer work.Done()
		for ok := true; ok; _, _, ok = l.Next() {
			if n := running.Add(1); n > limit {
				t.Errorf("%d calls run", n)
			}
			runtime.Gosched()
			running.Add(-1)
			ran.Add(1)
			l.Release()
		}
	}
	event := func(_, what string) {
		if what != "runs" {
			refused.Add(1)
			return
		}
		work.Add(1)
		go run()
	}
	const callers, each = 16, 500
	for i := range callers {
		calls.Go(func() {
			for n := range each {
				if level := (i + n) % 4; l.TryAcquire() {
					event("", "runs")
				} else {
					l.Enqueue(&call{"", event}, level)
				}
			}
		})
	}
	calls.Wait()
	work.Wait()
	if s := l.Stats(); s.Running != 0 || s.Waiting != 0 {
		t.Errorf("%+v at the end", s)
	}
	if n := ran.Load() + refused.Load(); n != callers*each || ran.Load() == 0 {
		t.Errorf("%d calls ran and %d were refused, of %d", ran.Load(), refused.Load(), callers*each)
	}
}

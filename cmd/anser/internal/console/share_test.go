package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/collect"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/simulate"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// What a reading takes of its process and of the console, and what the console takes in a second
// with a viewer, and without one, as measured: see "The console" in docs/benchmarks.md.
const (
	costOfPage    = 350 * time.Microsecond
	costOfReading = 150 * time.Microsecond
	costWatched   = 550 * time.Microsecond
	costUnwatched = 150 * time.Microsecond
)

// quiet is a system of eight processes, and a console that knows what it uses.
type quiet struct {
	*site
	began   time.Time
	pages   *counting
	watched atomic.Int64 // nanoseconds of viewers
}

func openQuiet(t *testing.T, processors float64) *quiet {
	t.Helper()
	sim := simulate.New(simulate.Options{Services: 2, Instances: 4, Rate: 100, Base: base})
	q := &quiet{
		site:  &site{sim: sim, registry: &flaky{Memory: registry.NewMemory()}},
		began: time.Now(), pages: &counting{RoundTripper: simulate.Transport(sim)},
	}
	q.use(processors)
	if err := q.sim.Register(t.Context(), q.registry); err != nil {
		t.Fatal(err)
	}
	var err error
	q.Console, err = console.New(console.Options{
		Registries: []collect.Source{{Name: "memory://", Kind: "memory", Resolver: q.registry}}, CPU: q.used,
		Client: &http.Client{Transport: q.pages}, Guard: func(h http.Handler) http.Handler { return h },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// use makes the processes use a number of processors together.
func (q *quiet) use(processors float64) {
	for n := range 8 {
		q.sim.Use(n, processors/8)
	}
}

// used returns what the console has used.
func (q *quiet) used() time.Duration {
	watched := time.Duration(q.watched.Load())
	return scale(costWatched, watched) + scale(costUnwatched, time.Since(q.began)-watched) + time.Duration(q.pages.requests.Load())*costOfReading
}

func scale(cost, passed time.Duration) time.Duration {
	return time.Duration(cost.Seconds() * passed.Seconds() * 1e9)
}

// view makes a viewer look at a path until the function that it returns is called.
func (q *quiet) view(t *testing.T, path string) (leave func()) {
	ctx, cancel := context.WithCancel(t.Context())
	go q.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	return cancel
}

// pass lets time pass, and returns the readings and the processor time of the console and of the
// readings in it.
func (q *quiet) pass(d time.Duration, watched bool) (reads int64, cost time.Duration) {
	before, used := q.Reads(), q.used()
	for range d / time.Second {
		time.Sleep(time.Second)
		if watched {
			q.watched.Add(int64(time.Second))
		}
	}
	synctest.Wait()
	reads = q.Reads() - before
	return reads, q.used() - used + time.Duration(reads)*costOfPage
}

// The console and its readings take at most 0.9 % of what the processes use, with and without a
// viewer, whatever it looks at: down to 1 % of the calls that the processes of docs/benchmarks.md
// can make. Below that each is still read every five seconds.
func TestShareOfTheCalls(t *testing.T) {
	const perMinute = 8 * 60
	for _, c := range []struct {
		processors float64
		path       string // of the viewer; "": none
		reads      int64  // in a minute, at least
		over       bool   // the share is
	}{
		{1.218, "/api/events", perMinute, false},
		{0.579, "/api/events", perMinute, false},
		{0.4, "/api/events", perMinute / 2, false},
		{0.152, "/api/events", perMinute / 5, false},
		{0.152, "/api/events?instances=1&service=shop.service-000", perMinute / 5, false},
		{0.4, "/api/events?instances=1&service=shop.service-000", perMinute / 2, false},
		{0.02, "/api/events?instances=1&service=shop.service-000", perMinute / 5, true},
		{1.218, "", perMinute / 10, false},
		{0.152, "", perMinute / 10, false},
		{0.05, "", perMinute / 30, false},
	} {
		t.Run(fmt.Sprintf("%v processors, %s", c.processors, c.path), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openQuiet(t, c.processors)
				q.pass(3*time.Second, false)
				watched := c.path != ""
				if watched {
					defer q.view(t, c.path)()
				}
				q.pass(50*time.Second, watched)
				reads, cost := q.pass(time.Minute, watched)
				used := scale(time.Second, time.Duration(60*c.processors*1e9))
				if over := cost > used*9/1000; over != c.over {
					t.Errorf("%v with %d readings, %.2f %% of %v", cost, reads, 100*cost.Seconds()/used.Seconds(), used)
				}
				if reads < c.reads || reads > perMinute {
					t.Errorf("%d readings, want at least %d", reads, c.reads)
				}
			})
		})
	}
}

// Processes whose calls become more are read every second again, within four seconds.
func TestCallsThatBecomeMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openQuiet(t, 0.152)
		q.pass(3*time.Second, false)
		defer q.view(t, "/api/events")()
		for i := range 4 {
			q.use(0.152)
			q.pass(time.Minute, true)
			time.Sleep(time.Duration(i) * 630 * time.Millisecond) // at any time between two rounds
			if reads, _ := q.pass(20*time.Second, true); reads != 32 {
				t.Errorf("%d readings of processes with few calls, want 32", reads)
			}
			q.use(1.218)
			time.Sleep(4 * time.Second) // some readings have covered it
			synctest.Wait()
			if v := get[model.System](t, q, "/api/system"); v.Period != time.Second {
				t.Errorf("rounds every %v", v.Period)
			}
			if reads, _ := q.pass(10*time.Second, true); reads < 76 {
				t.Errorf("%d readings of processes with many calls, want at least 76", reads)
			}
		}
		if v := get[model.System](t, q, "/api/system"); v.Interval != time.Second || v.Period != time.Second {
			t.Errorf("the page says %v, %v", v.Interval, v.Period)
		}
	})
}

// What happens is seen within two seconds also while processes are read every five: instances that
// leave and join, rules, and a registry that ends its connections and answers again. One that keeps
// them and does not answer is seen when it is asked.
func TestEventsWhileProcessesAreReadRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openQuiet(t, 0.02)
		const service = "shop.service-000"
		time.Sleep(3 * time.Second)
		defer q.view(t, "/api/events")()
		first := func(v *model.System) *model.Service {
			return &v.Services[slices.IndexFunc(v.Services, func(s model.Service) bool { return s.Name == service })]
		}
		healthy := func(v *model.System) bool { return v.Registries[0].Healthy }
		for i, event := range []struct {
			what   string
			within time.Duration
			do     func() error
			seen   func(v *model.System) bool
		}{
			{"an instance that leaves", 2 * time.Second, func() error { return q.registry.Deregister(t.Context(), q.sim.Instance(0)) }, func(v *model.System) bool { return first(v).Instances == 3 }},
			{"one that joins", 2 * time.Second, func() error { return q.registry.Register(t.Context(), q.sim.Instance(0)) }, func(v *model.System) bool { return first(v).Instances == 4 }},
			{"rules", 2 * time.Second, func() error {
				_, err := route.Save(t.Context(), q.registry, service, 0, route.RuleSet{Instances: []route.InstanceRule{{Match: route.Select{ID: route.Patterns{service + "-1"}}, State: "draining"}}}, "ada", "")
				return err
			}, func(v *model.System) bool { return first(v).Rules == 1 && first(v).Drained == 1 }},
			{"a registry whose connections end", 2 * time.Second, func() error {
				q.registry.gone.Store(true)
				q.registry.cut()
				return nil
			}, func(v *model.System) bool { return !healthy(v) }},
			{"its return", 2 * time.Second, func() error { q.registry.gone.Store(false); return nil }, healthy},
			{"a registry that does not answer", 6 * time.Second, func() error { q.registry.gone.Store(true); return nil }, func(v *model.System) bool { return !healthy(v) }},
			{"its return", 2 * time.Second, func() error { q.registry.gone.Store(false); return nil }, healthy},
		} {
			time.Sleep(20*time.Second + time.Duration(i)*300*time.Millisecond) // at any time between two rounds
			synctest.Wait()
			if v := get[model.System](t, q, "/api/system"); v.Interval != 5*time.Second || v.Period != 2500*time.Millisecond || event.seen(&v) {
				t.Fatalf("before %s: readings every %v, rounds every %v, %+v", event.what, v.Interval, v.Period, v)
			}
			if err := event.do(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(event.within)
			synctest.Wait()
			if v := get[model.System](t, q, "/api/system"); !event.seen(&v) {
				t.Errorf("%s: not seen after %v: %+v", event.what, event.within, v)
			}
		}
	})
}

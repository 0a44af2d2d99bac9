package cluster

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
)

// states maps names to functions that put a client into the states in which picking and counting
// differ.
var states = map[string]func(cl *restingCluster, m *restingMethod){
	"well": func(*restingCluster, *restingMethod) {},
	"counting": func(cl *restingCluster, m *restingMethod) {
		cl.alert.Store(true)
	},
	"breaker open": func(cl *restingCluster, m *restingMethod) {
		cl.mu.Lock()
		defer cl.mu.Unlock()
		for _, e := range cl.endpoints {
			cl.openLocked(e, e.methodCounters(m), "for the test", mono.Now())
			break
		}
		cl.rebuildLocked()
	},
	"one ejected": func(cl *restingCluster, m *restingMethod) {
		cl.mu.Lock()
		defer cl.mu.Unlock()
		for _, e := range cl.endpoints {
			cl.ejectLocked(candidate[*restingHost, *string]{e: e, why: "for the test", silent: true}, mono.Now())
			break
		}
		cl.rebuildLocked()
	},
}

// pick picks an endpoint for a call as a client does.
func pick(cl *restingCluster, m *restingMethod, r *balance.Request) *restingEndpoint {
	v := cl.View()
	if around := m.View(); around != nil {
		v = around
	}
	r.Method = m.Name
	return v.Pick(r)
}

// Picking and counting do not allocate, whatever the state.
func TestHealthAllocatesNothing(t *testing.T) {
	for name, set := range states {
		cl, m := crowd(t, 100)
		set(cl, m)
		var r balance.Request
		e := pick(cl, m, &r)
		e.Succeeded(m, 1)
		if n := testing.AllocsPerRun(1000, func() { pick(cl, m, &r) }); n > 0 {
			t.Errorf("%s: a pick allocates %v times", name, n)
		}
		if n := testing.AllocsPerRun(1000, func() { e.Succeeded(m, 1) }); n > 0 {
			t.Errorf("%s: counting allocates %v times", name, n)
		}
		if n := testing.AllocsPerRun(1000, func() { e.Failed(m) }); n > 0 {
			t.Errorf("%s: counting a failure allocates %v times", name, n)
		}
	}
}

// BenchmarkPick picks among a thousand instances.
func BenchmarkPick(b *testing.B) {
	for name, set := range states {
		b.Run(name, func(b *testing.B) {
			cl, m := crowd(b, 1000)
			set(cl, m)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				var r balance.Request
				for pb.Next() {
					pick(cl, m, &r)
				}
			})
		})
	}
}

// BenchmarkAnswered measures what counting adds to a call: the load of the flag, and while
// something fails also the counting.
func BenchmarkAnswered(b *testing.B) {
	for _, alert := range []bool{false, true} {
		b.Run(fmt.Sprintf("counting=%v", alert), func(b *testing.B) {
			cl, m := crowd(b, 2)
			e := pick(cl, m, new(balance.Request))
			b.ReportAllocs()
			for b.Loop() {
				cl.alert.Store(alert)
				if e.Counting() {
					e.Succeeded(m, 1)
				}
			}
		})
	}
}

// The window of the counters slides: older results do not count, younger ones do.
func TestTallyWindow(t *testing.T) {
	var a methodCounters[*restingHost, *string]
	sum := func(slot, ok, failed int64) counts {
		a.answered.Add(ok)
		a.failed.Add(failed)
		return a.advance(slot)
	}
	for _, step := range []struct{ slot, ok, failed, wantOK, wantFailed int64 }{
		{1000, 5, 1, 5, 1},
		{1000, 1, 0, 6, 1},
		{1005, 2, 2, 8, 3},
		{1009, 0, 0, 8, 3},
		{1010, 0, 1, 2, 3},
		{1015, 1, 0, 1, 1},
		{1014, 1, 0, 2, 1},
		{1025, 0, 0, 0, 0},
		{9999, 3, 0, 3, 0},
	} {
		got := sum(step.slot, step.ok, step.failed)
		if got.answered != step.wantOK || got.failed != step.wantFailed {
			t.Errorf("slot %d: %+v, want %d and %d", step.slot, got, step.wantOK, step.wantFailed)
		}
	}
}

// The success rate algorithm: 1.9 standard deviations and ten points below the mean, with at least
// five instances.
func TestFailingMore(t *testing.T) {
	for _, test := range []struct {
		rates []float64
		want  []int
	}{
		{[]float64{1, 1, 1, 0}, nil},                       // too few instances
		{[]float64{1, 1, 1, 1, 0}, []int{4}},               //
		{[]float64{1, 1, 1, 1, 0.5}, []int{4}},             //
		{[]float64{1, 1, 1, 1, 0.95}, nil},                 // too small a gap, although the deviation is small
		{[]float64{0.2, 0.2, 0.2, 0.2, 0.2}, nil},          // no differences
		{[]float64{1, 0.9, 0.8, 0.7, 0.6, 0.5}, nil},       // spread
		{[]float64{1, 1, 1, 1, 1, 1, 0, 0}, nil},           // Envoy's rule does not see a quarter either
		{[]float64{1, 1, 1, 1, 1, 1, 1, 1, 0.3}, []int{8}}, //
	} {
		var rates []measured[*restingHost, *string]
		all := make([]*restingEndpoint, len(test.rates))
		for i, r := range test.rates {
			all[i] = new(restingEndpoint)
			rates = append(rates, measured[*restingHost, *string]{all[i], r})
		}
		var got []int
		for _, s := range failingMore(rates, 1.9) {
			got = append(got, slices.Index(all, s.e))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.rates, got, test.want)
		}
	}
}

// The ejection time grows with each ejection in a row, up to the maximum.
func TestEjectionTimes(t *testing.T) {
	cl, _ := crowd(t, 2)
	cl.mu.Lock()
	defer cl.mu.Unlock()
	e := cl.endpoints["host-0:1"]
	now := mono.Now()
	var got []time.Duration
	cl.ejectLocked(candidate[*restingHost, *string]{e: e, why: "for the test"}, now)
	for range 6 {
		got = append(got, e.conduct.ejection.until.Sub(now))
		cl.ejectForLocked(e, "again", now)
	}
	want := []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second, 8 * time.Second, 8 * time.Second}
	if !slices.Equal(got, want) {
		t.Errorf("it is out for %v: want %v", got, want)
	}
	cl.unejectLocked(e, "for the test", now)
	cl.ejectLocked(candidate[*restingHost, *string]{e: e, why: "much later"}, now.Add(time.Minute))
	if n := e.conduct.ejection.times; n != 1 {
		t.Errorf("a minute later it is out for the time number %d: want 1", n)
	}
	e.conduct.ejection.times = math.MaxInt
	cl.unejectLocked(e, "for the test", now)
}

// The counters of an endpoint grow by factors, and methods that are not kept share one.
func TestTalliesGrowByFactors(t *testing.T) {
	cl, _ := crowd(t, 1)
	e := cl.Find("host-0:1")
	made, list := 0, e.conduct.tallies.Load()
	for i := range MaxMethods {
		m := &restingMethod{Index: i}
		if tally := e.methodCounters(m); tally.method != m || e.methodCounters(m) != tally {
			t.Fatalf("the tally of method %d is not its own", i)
		}
		if now := e.conduct.tallies.Load(); now != list {
			list = now
			made += len(*list)
		}
	}
	if most := 4 * MaxMethods; made > most {
		t.Errorf("room for %d tallies was made for %d, want at most %d", made, MaxMethods, most)
	}
	c, d := &restingMethod{Name: "C.M", Index: MaxMethods}, &restingMethod{Name: "D.M", Index: MaxMethods}
	if e.methodCounters(c) != e.methodCounters(d) {
		t.Error("methods beyond the limit are counted for themselves")
	}
}

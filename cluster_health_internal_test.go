package anser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// crowd returns a client of n instances that makes no calls.
func crowd(tb testing.TB, n int) (*Client, *clientMethod) {
	tb.Helper()
	var addresses []string
	for i := range n {
		addresses = append(addresses, fmt.Sprintf("host-%d:1", i))
	}
	c, err := Dial("tcp://"+strings.Join(addresses, ","), Subset(0, 0), Logger(slog.New(slog.DiscardHandler)),
		Dialer(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody is there") }))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	m, err := c.method("Echo.Say")
	if err != nil {
		tb.Fatal(err)
	}
	return c, m
}

// states maps names to functions that put a client into the states in which picking and counting
// differ.
var states = map[string]func(c *Client, m *clientMethod){
	"well": func(*Client, *clientMethod) {},
	"counting": func(c *Client, m *clientMethod) {
		c.cluster.alert.Store(true)
	},
	"breaker open": func(c *Client, m *clientMethod) {
		c.cluster.mu.Lock()
		defer c.cluster.mu.Unlock()
		for _, e := range c.cluster.endpoints {
			c.cluster.openLocked(e, e.methodCounters(m), "for the test", mono.Now())
			break
		}
		c.cluster.rebuildLocked()
	},
	"one ejected": func(c *Client, m *clientMethod) {
		c.cluster.mu.Lock()
		defer c.cluster.mu.Unlock()
		for _, e := range c.cluster.endpoints {
			c.cluster.ejectLocked(candidate{e: e, why: "for the test", silent: true}, mono.Now())
			break
		}
		c.cluster.rebuildLocked()
	},
}

// Picking and counting do not allocate, whatever the state.
func TestHealthAllocatesNothing(t *testing.T) {
	for name, set := range states {
		c, m := crowd(t, 100)
		set(c, m)
		k := c.pool.getCall()
		e := c.pick(k, m)
		e.recordSuccess(m, 1)
		if n := testing.AllocsPerRun(1000, func() { c.pick(k, m) }); n > 0 {
			t.Errorf("%s: a pick allocates %v times", name, n)
		}
		if n := testing.AllocsPerRun(1000, func() { e.recordSuccess(m, 1) }); n > 0 {
			t.Errorf("%s: counting allocates %v times", name, n)
		}
		if n := testing.AllocsPerRun(1000, func() { e.failedIn(m) }); n > 0 {
			t.Errorf("%s: counting a failure allocates %v times", name, n)
		}
	}
}

// BenchmarkClientPick picks among a thousand instances.
func BenchmarkClientPick(b *testing.B) {
	for name, set := range states {
		b.Run(name, func(b *testing.B) {
			c, m := crowd(b, 1000)
			set(c, m)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				k := c.pool.getCall()
				for pb.Next() {
					c.pick(k, m)
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
			c, m := crowd(b, 2)
			e := c.pick(c.pool.getCall(), m)
			b.ReportAllocs()
			for b.Loop() {
				c.cluster.alert.Store(alert)
				if e.cluster.alert.Load() {
					e.recordSuccess(m, 1)
				}
			}
		})
	}
}

// The window of the counters slides: older results do not count, younger ones do.
func TestTallyWindow(t *testing.T) {
	var a methodCounters
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
		var rates []measured
		all := make([]*endpoint, len(test.rates))
		for i, r := range test.rates {
			all[i] = new(endpoint)
			rates = append(rates, measured{all[i], r})
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
	c, _ := crowd(t, 2)
	cl := c.cluster
	cl.mu.Lock()
	defer cl.mu.Unlock()
	e := cl.endpoints["host-0:1"]
	now := mono.Now()
	var got []time.Duration
	cl.ejectLocked(candidate{e: e, why: "for the test"}, now)
	for range 6 {
		got = append(got, e.conduct.ejection.until.Sub(now))
		cl.ejectForLocked(e, "again", now)
	}
	want := []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second, 8 * time.Second, 8 * time.Second}
	if !slices.Equal(got, want) {
		t.Errorf("it is out for %v: want %v", got, want)
	}
	cl.unejectLocked(e, "for the test", now)
	cl.ejectLocked(candidate{e: e, why: "much later"}, now.Add(time.Minute))
	if n := e.conduct.ejection.times; n != 1 {
		t.Errorf("a minute later it is out for the time number %d: want 1", n)
	}
	e.conduct.ejection.times = math.MaxInt
	cl.unejectLocked(e, "for the test", now)
}

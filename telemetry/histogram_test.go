package telemetry

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// Every duration is in the bucket whose bounds contain it.
func TestBuckets(t *testing.T) {
	check := func(d time.Duration) {
		t.Helper()
		i := indexOf(d)
		seconds := float64(d) * 1e-9
		low, high := math.Exp2(float64(i)/perOctave), math.Exp2(float64(i+1)/perOctave)
		const rounding = 1e-15
		if i > firstIndex && seconds <= low*(1-rounding) || i < lastIndex && seconds > high*(1+rounding) {
			t.Fatalf("%v is in the bucket %d, from %v to %v s", d, i, low, high)
		}
	}
	for d := time.Duration(8); d < 2000*time.Second; d += d/1000 + 1 {
		check(d)
	}
	for range 100_000 {
		check(8 + time.Duration(rand.Int64N(int64(time.Second))))
	}
	for _, tt := range []struct {
		d    time.Duration
		want int
	}{{-1, firstIndex}, {0, firstIndex}, {1, firstIndex}, {time.Second, -1}, {time.Second + 1, 0}, {2 * time.Second, 7}, {math.MaxInt64, lastIndex}} {
		if got := indexOf(tt.d); got != tt.want {
			t.Errorf("indexOf(%v) = %d, want %d", tt.d, got, tt.want)
		}
	}
}

// Quantiles are off by at most the width of a bucket.
func TestQuantiles(t *testing.T) {
	var p part
	taken := func() Histogram { return p.ok.histogram() }
	note := func(d time.Duration) { p.timesOf(placeOf(anser.OK)).note(d, indexOf(d)-firstIndex) }
	for i := range 1000 {
		note(time.Duration(i+1) * time.Microsecond)
	}
	h := taken()
	if h.Count != 1000 || h.Sum != 500500*time.Microsecond || h.Mean() != 500500*time.Nanosecond {
		t.Errorf("count %d, sum %v, mean %v", h.Count, h.Sum, h.Mean())
	}
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		want, got := time.Duration(q*1000)*time.Microsecond, h.Quantile(q)
		if got < want || float64(got) > 1.1*float64(want) {
			t.Errorf("the quantile %v is %v, want %v to 10 %% more", q, got, want)
		}
	}
	old := h
	for range 10 {
		note(time.Second)
	}
	h = taken()
	h.Sub(&old)
	if h.Count != 10 || h.Sum != 10*time.Second || len(h.Counts) != 1 || h.First != -1 || h.Counts[0] != 10 {
		t.Errorf("the difference of two snapshots is %+v", h)
	}
	h.Add(&old)
	if all := taken(); h.Count != all.Count || h.Sum != all.Sum || h.First != all.First || len(h.Counts) != len(all.Counts) {
		t.Errorf("adding up gives %+v, want %+v", h, all)
	}
	var empty Histogram
	if empty.Quantile(0.5) != 0 || empty.Mean() != 0 {
		t.Error("an empty histogram has a quantile or a mean")
	}
	empty.Sub(&old)
	if empty.Count != 0 || len(empty.Counts) != 0 || empty.Sum != 0 {
		t.Errorf("less than nothing is %+v", empty)
	}
}

// Calls are counted while others are, while someone looks, and while parts are in use.
func TestParts(t *testing.T) {
	m := newMethod("Echo.Say")
	m.parts = make([]part, 4)
	for i := range 3 {
		m.parts[i].mu.Lock()
	}
	m.count(anser.OK, onClient, &anser.Measurement{Duration: time.Millisecond}, 0) // takes the part that is free
	for i := range 3 {
		m.parts[i].mu.Unlock()
	}
	const callers, calls = 8, 2000
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range calls {
				m.count(anser.Code(i), ran, &anser.Measurement{
					Duration: 3 * time.Millisecond, Queue: time.Millisecond, RequestBytes: 7, ReplyBytes: 11, Attempt: i & 1,
				}, 2*time.Millisecond)
				runtime.Gosched()
			}
		})
	}
	var last Method
	look := func() {
		now := m.snapshot(true, "")
		times := now.Times()
		if calls := times.Count - 1; now.RequestBytes != 7*calls || now.ReplyBytes != 11*calls || uint64(now.Queue/time.Millisecond) != calls || uint64(now.Handle/time.Millisecond) != 2*calls {
			t.Errorf("%d calls were counted in some of the numbers only: %+v", calls, now)
		}
		if before := last.Times(); before.Count > times.Count || last.Retried > now.Retried {
			t.Errorf("%d calls, %d retried, after %d, %d", times.Count, now.Retried, before.Count, last.Retried)
		}
		last = now
	}
	for range 200 {
		look()
		runtime.Gosched()
	}
	wg.Wait()
	look()
	if all := last.Times(); all.Count != callers*calls+1 || all.Sum != (3*callers*calls+1)*time.Millisecond || last.Retried != callers*calls/2 {
		t.Errorf("%d calls in %v, %d retried; want %d", all.Count, all.Sum, last.Retried, callers*calls+1)
	}
	if len(last.Codes) != callers {
		t.Errorf("there are %d codes, want %d", len(last.Codes), callers)
	}
}

func BenchmarkCount(b *testing.B) {
	m := newMethod("Echo.Say")
	b.RunParallel(func(pb *testing.PB) {
		c := anser.Measurement{Duration: 12345, RequestBytes: 64, ReplyBytes: 64}
		for pb.Next() {
			m.count(anser.OK, ran, &c, c.Duration-c.Queue)
			c.Duration += 17
		}
	})
}

// Histograms that another process has sent can have indexes that no duration has.
func TestForeignHistograms(t *testing.T) {
	var h Histogram
	h.Add(&Histogram{Count: 3, First: -1 << 62, Counts: []uint64{1, 2}})
	h.Add(&Histogram{Count: 1, First: 1 << 62, Counts: []uint64{1}})
	h.Sub(&Histogram{Count: 1, First: 1 << 40, Counts: []uint64{1}})
	if h.Count != 3 || h.Quantile(1) > 10*time.Nanosecond {
		t.Errorf("got %+v", h)
	}
}

package balance_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// endpointsWith returns one endpoint per weight.
func endpointsWith(weights ...int) []*balance.Endpoint {
	list := make([]*balance.Endpoint, len(weights))
	for i, w := range weights {
		list[i] = balance.NewEndpoint(registry.Instance{
			Service: "arith", Address: fmt.Sprintf("10.0.%d.%d:80", i/256, i%256), Weight: w,
		})
	}
	return list
}

// measured gives each endpoint a latency of about d.
func measured(list []*balance.Endpoint, d time.Duration) []*balance.Endpoint {
	for i, e := range list {
		e.Observe(int64(time.Second), d+time.Duration(i%7)*d/100)
	}
	return list
}

// wantLatency fails if the latency differs from want by more than one part in a thousand.
func wantLatency(t *testing.T, e *balance.Endpoint, want time.Duration) {
	t.Helper()
	if off := (e.Latency() - want).Abs(); off > want/1000 {
		t.Errorf("latency %v: want %v", e.Latency(), want)
	}
}

func TestEndpointCountsAttempts(t *testing.T) {
	e := endpointsWith(0)[0]
	for range 4 {
		e.Begin()
	}
	e.End(0, time.Millisecond)
	e.Abort()
	e.Fail(0)
	if e.Active() != 1 {
		t.Errorf("%d attempts in flight: want 1", e.Active())
	}
}

func TestEndpointLatencyBeforeTheFirstSample(t *testing.T) {
	e := endpointsWith(0)[0]
	e.Begin()
	e.Abort()
	if e.Latency() != 0 {
		t.Errorf("latency %v without a sample: want 0", e.Latency())
	}
	e.Observe(0, 0)
	if e.Latency() != 1 {
		t.Errorf("latency %v after a sample of 0: want 1ns, as 0 means none", e.Latency())
	}
}

func TestEndpointLatencyJumpsUpAndDecays(t *testing.T) {
	e := endpointsWith(0)[0]
	now := int64(time.Hour)
	e.Observe(now, time.Millisecond)
	wantLatency(t, e, time.Millisecond)
	e.Observe(now, 101*time.Millisecond)
	wantLatency(t, e, 101*time.Millisecond)

	// Samples every ten milliseconds for ten seconds leave 1/e of the peak.
	for range 1000 {
		now += int64(10 * time.Millisecond)
		e.Observe(now, time.Millisecond)
	}
	want := time.Millisecond + 36788*time.Microsecond
	if off := (e.Latency() - want).Abs(); off > want/50 {
		t.Errorf("latency %v ten seconds after the peak: want %v", e.Latency(), want)
	}
}

func TestEndpointCountsTheSlowestSampleOfATick(t *testing.T) {
	e := endpointsWith(0)[0]
	e.Observe(0, 5*time.Millisecond)
	e.Observe(1000, time.Millisecond)
	wantLatency(t, e, 5*time.Millisecond)
	e.Observe(2000, 7*time.Millisecond)
	wantLatency(t, e, 7*time.Millisecond)
}

// The average lies between the samples, whatever their times are, even if they run backwards.
func TestEndpointLatencyStaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := endpointsWith(0)[0]
		least, most := math.Inf(1), 0.0
		for range rapid.IntRange(1, 50).Draw(t, "samples") {
			now := rapid.Int64().Draw(t, "now")
			d := rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "latency")
			least, most = min(least, float64(d)), max(most, float64(d))
			e.Observe(now, time.Duration(d))
			if got := float64(e.Latency()); got < least*(1-1e-6)-1 || got > most*(1+1e-6) {
				t.Fatalf("latency %v: want %v to %v", e.Latency(), time.Duration(least), time.Duration(most))
			}
		}
	})
}

func TestEndpointFailuresDouble(t *testing.T) {
	e := endpointsWith(0)[0]
	e.Observe(0, 100*time.Microsecond)
	for _, want := range []time.Duration{1, 2, 4, 8} {
		e.Begin()
		e.Fail(0)
		wantLatency(t, e, want*time.Millisecond)
	}
	for range 40 {
		e.Begin()
		e.Fail(0)
	}
	wantLatency(t, e, 10*time.Second)
}

func TestEndpointIsSafeForConcurrentUse(t *testing.T) {
	e := endpointsWith(0)[0]
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 5000 {
				e.Begin()
				e.End(int64(i)*int64(time.Microsecond), time.Duration(1+rand.Int64N(int64(time.Millisecond))))
			}
		})
	}
	for i := range 1000 {
		e.SetInstance(registry.Instance{Service: "arith", Address: "10.0.0.1:80", Weight: i})
		if e.Instance().Service != "arith" {
			t.Error("half an instance")
		}
	}
	wg.Wait()
	if e.Active() != 0 {
		t.Errorf("%d attempts in flight: want 0", e.Active())
	}
}

func TestEndpointKeepsItsOwnCopyOfTheInstance(t *testing.T) {
	in := registry.Instance{Service: "arith", Address: "10.0.0.1:80", Tags: map[string]string{"a": "1"}}
	e := balance.NewEndpoint(in)
	in.Tags["a"] = "2"
	if got := e.Instance().Tags["a"]; got != "1" {
		t.Errorf("tag %q: want the one it was made with", got)
	}
}

// The size of an Endpoint is a multiple of two cache lines, so the allocator gives each its own
// lines.
func TestEndpointFillsCacheLines(t *testing.T) {
	if size := unsafe.Sizeof(balance.Endpoint{}); size != 128 {
		t.Errorf("an endpoint has %d bytes: want 128", size)
	}
}

func TestEndpointAllocatesNothing(t *testing.T) {
	e := endpointsWith(0)[0]
	var now int64
	if n := testing.AllocsPerRun(1000, func() {
		e.Begin()
		now += int64(3 * time.Millisecond)
		e.End(now, time.Millisecond)
	}); n != 0 {
		t.Errorf("an attempt allocates %v times: want 0", n)
	}
}

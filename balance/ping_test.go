package balance_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
)

// Shares are weight divided by latency, at most 16 times the lowest one.
func TestPingFollowsWeightAndLatency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 20), 2, 16).Draw(t, "weights")
		list := endpointsWith(weights...)
		latency := rapid.SliceOfN(rapid.IntRange(1, 10), len(list), len(list)).Draw(t, "milliseconds")
		want := make([]float64, len(list))
		var all float64
		for i, e := range list {
			e.Observe(0, time.Duration(latency[i])*time.Millisecond)
			want[i] = float64(weights[i]) / float64(latency[i])
			all += want[i]
		}
		for i := range want {
			want[i] /= all
		}
		const n = 20_000
		wantShares(t, picks(balance.Ping().Build(list), list, n), want, n)
	})
}

func TestPingKeepsTryingTheSlow(t *testing.T) {
	list := endpointsWith(1, 1)
	list[0].Observe(0, time.Millisecond)
	list[1].Observe(0, time.Hour)
	const n = 50_000
	wantShares(t, picks(balance.Ping().Build(list), list, n), []float64{16. / 17, 1. / 17}, n)
}

func TestPingTakesUnmeasuredForFast(t *testing.T) {
	list := endpointsWith(1, 1, 1)
	list[0].Observe(0, time.Millisecond)
	list[1].Observe(0, 2*time.Millisecond)
	const n = 50_000
	wantShares(t, picks(balance.Ping().Build(list), list, n), []float64{.4, .2, .4}, n)
	fresh := endpointsWith(1, 3)
	wantShares(t, picks(balance.Ping().Build(fresh), fresh, n), []float64{.25, .75}, n)
}

// The lowest latency of many endpoints is looked up only now and then.
func TestPingOfMany(t *testing.T) {
	list := endpointsWith(make([]int, 1000)...)
	for i, e := range list {
		e.Observe(0, time.Duration(1+i%4)*time.Millisecond)
	}
	picker := balance.Ping().Build(list)
	picker.Pick(nil)
	for _, e := range list[:4] { // the lowest latency is halved after it was looked up
		e.Observe(int64(time.Hour), time.Nanosecond)
		e.Observe(int64(2*time.Hour), 500*time.Microsecond)
	}
	picks(picker, list, 2000)
	const n = 100_000
	byLatency := make([]int, 4)
	for i, c := range picks(picker, list, n) {
		byLatency[i%4] += c
	}
	for i, want := range []float64{12. / 25, 6. / 25, 4. / 25, 3. / 25} {
		if got := float64(byLatency[i]) / n; math.Abs(got-want) > want/10 {
			t.Errorf("those with %d ms get %.3f of the calls: want about %.3f", 1+i, got, want)
		}
	}
}

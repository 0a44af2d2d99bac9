package balance_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
)

// begin starts attempts at each endpoint.
func begin(list []*balance.Endpoint, attempts ...int) {
	for i, n := range attempts {
		for range n {
			list[i].Begin()
		}
	}
}

func TestLeastActiveIsExactForFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 16).Draw(t, "endpoints")
		weights := rapid.SliceOfN(rapid.IntRange(1, 1000), n, n).Draw(t, "weights")
		if rapid.Bool().Draw(t, "equal weights") {
			weights = slices.Repeat([]int{100}, n)
		}
		attempts := rapid.SliceOfN(rapid.IntRange(0, 20), n, n).Draw(t, "attempts")
		list := endpointsWith(weights...)
		begin(list, attempts...)

		// Whatever fraction counts for the new attempt, the load of the picked endpoint without it
		// is at most that of every other with it.
		bound := math.Inf(1)
		for i := range list {
			bound = min(bound, float64(attempts[i]+1)/float64(weights[i]))
		}
		picker := balance.LeastActive().Build(list)
		for range 20 {
			i := slices.Index(list, picker.Pick(nil))
			if load := float64(attempts[i]) / float64(weights[i]); load > bound+1e-9 {
				t.Fatalf("picked endpoint %d with load %g: another has %g with the attempt", i, load, bound)
			}
			if slices.Max(weights) == slices.Min(weights) && attempts[i] != slices.Min(attempts) {
				t.Fatalf("picked endpoint %d with %d attempts of %v", i, attempts[i], attempts)
			}
		}
	})
}

func TestLeastActiveBreaksTiesEvenly(t *testing.T) {
	list := endpointsWith(1, 1, 1, 1, 1)
	begin(list, 2, 1, 1, 5, 1)
	const n = 30_000
	counts := picks(balance.LeastActive().Build(list), list, n)
	wantShares(t, counts, []float64{0, 1. / 3, 1. / 3, 0, 1. / 3}, n)
}

// A light endpoint that is idle while the others are busy gets some calls, but not all.
func TestLeastActiveDoesNotFloodALightEndpoint(t *testing.T) {
	for _, others := range []int{1, 5, 50} {
		weights := slices.Repeat([]int{100}, others+1)
		weights[0] = 1
		list := endpointsWith(weights...)
		begin(list, slices.Repeat([]int{1}, others+1)...)
		list[0].Abort()
		const n = 100_000
		got := float64(picks(balance.LeastActive().Build(list), list, n)[0]) / n
		fair := 1 / float64(1+100*others)
		if got > .03 || got < fair/5 {
			t.Errorf("a weight of 1 beside %d busy ones of 100 gets %.5f of the calls: want %.5f to 0.03",
				others, got, fair/5)
		}
	}
}

func TestLeastActiveFollowsWeightsWhenIdle(t *testing.T) {
	weights := make([]int, 100)
	for i := range weights {
		weights[i] = 1 + i%5
	}
	list := endpointsWith(weights...)
	const n = 100_000
	wantShares(t, picks(balance.LeastActive().Build(list), list, n), shares(weights), n)
}

func TestLeastActivePassesOverTheBusyAmongMany(t *testing.T) {
	list := endpointsWith(make([]int, 200)...)
	for _, e := range list[:100] {
		begin([]*balance.Endpoint{e}, 3)
	}
	const n = 50_000
	var busy int
	for _, c := range picks(balance.LeastActive().Build(list), list, n)[:100] {
		busy += c
	}
	if share := float64(busy) / n; math.Abs(share-1./16) > .02 {
		t.Errorf("%.3f of the picks go to the busy half: want 1/16, where all four samples are busy", share)
	}
}

// Picks and their attempts even out the load, however many endpoints there are.
func TestLeastActiveLevelsTheLoad(t *testing.T) {
	for _, n := range []int{3, 16, 17, 1000} {
		list := endpointsWith(make([]int, n)...)
		picker := balance.LeastActive().Build(list)
		for range 10 * n {
			picker.Pick(nil).Begin()
		}
		for i, e := range list {
			if limit := int64(13); e.Active() > limit {
				t.Errorf("endpoint %d of %d has %d attempts: the mean is 10, want %d at most", i, n, e.Active(), limit)
			}
		}
	}
}

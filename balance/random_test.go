package balance_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
)

// wantShares fails if a count differs from its share of n by more than chance explains: eight
// standard deviations, once in 10^15 tests.
func wantShares(t interface{ Fatalf(string, ...any) }, counts []int, shares []float64, n int) {
	for i, got := range counts {
		want := shares[i] * float64(n)
		if off := math.Abs(float64(got) - want); off > 8*math.Sqrt(want*(1-shares[i]))+8 {
			t.Fatalf("endpoint %d was picked %d times of %d: want about %.0f", i, got, n, want)
		}
	}
}

func shares(weights []int) []float64 {
	var sum float64
	for _, w := range weights {
		sum += float64(w)
	}
	s := make([]float64, len(weights))
	for i, w := range weights {
		s[i] = float64(w) / sum
	}
	return s
}

func TestRandomFollowsWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1, 1_000_000))
		weights := rapid.SliceOfN(weight, 2, 40).Draw(t, "weights")
		list := endpointsWith(weights...)
		const n = 10_000
		wantShares(t, picks(balance.Random().Build(list), list, n), shares(weights), n)
	})
}

// A further attempt goes to the others, also by weight.
func TestRandomFollowsWeightsWithoutTheTried(t *testing.T) {
	list := endpointsWith(1000, 10, 20, 30)
	picker := balance.Random().Build(list)
	request := &balance.Request{Tried: list[3:]}
	counts := map[*balance.Endpoint]int{}
	const n = 20_000
	for range n {
		counts[picker.Pick(request)]++
	}
	got := []int{counts[list[0]], counts[list[1]], counts[list[2]]}
	wantShares(t, got, shares([]int{1000, 10, 20}), n)
}

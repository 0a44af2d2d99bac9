package balance_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
)

// sequence returns the indexes of the next n picks.
func sequence(picker balance.Picker, list []*balance.Endpoint, n int) []int {
	index := make(map[*balance.Endpoint]int, len(list))
	for i, e := range list {
		index[e] = i
	}
	s := make([]int, n)
	for i := range s {
		s[i] = index[picker.Pick(nil)]
	}
	return s
}

func sum(weights []int) (s int) {
	for _, w := range weights {
		s += w
	}
	return s
}

func TestWeightedIsExactInEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 60), 2, 30).Draw(t, "weights")
		factor := rapid.SampledFrom([]int{1, 2, 100}).Draw(t, "common factor")
		round := sum(weights)
		scaled := slices.Clone(weights)
		for i := range scaled {
			scaled[i] *= factor
		}
		list := endpointsWith(scaled...)
		s := sequence(balance.Weighted().Build(list), list, 3*round)
		counts := make([]int, len(list))
		for at, i := range s {
			counts[i]++
			if at >= round {
				counts[s[at-round]]--
			}
			if at >= round-1 && !slices.Equal(counts, weights) {
				t.Fatalf("the window of %d picks up to pick %d has %v: want %v", round, at, counts, weights)
			}
		}
	})
}

// Two points of a round that are each less than a turn off differ by less than two.
func TestWeightedIsSmooth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.OneOf(rapid.Just(1), rapid.IntRange(1, 20), rapid.IntRange(1, 1000))
		weights := rapid.SliceOfN(weight, 2, 40).Draw(t, "weights")
		round := sum(weights)
		list := endpointsWith(weights...)
		s := sequence(balance.Weighted().Build(list), list, 2*round)
		checkEven(t, s, shares(weights), 2)
	})
}

// checkEven fails if in some window of the sequence an index differs from its share by more than
// limit.
func checkEven(t interface{ Fatalf(string, ...any) }, s []int, shares []float64, limit float64) {
	for i, share := range shares {
		var lead, least, most float64 // of the index over its share; a window is the difference of two
		for at, j := range s {
			if lead -= share; i == j {
				lead++
			}
			least, most = min(least, lead), max(most, lead)
			if off := max(lead-least, most-lead); off > limit+1e-6 {
				t.Fatalf("index %d with the share %.6f is %.2f off in a window up to pick %d: want %.2f at most",
					i, share, off, at, limit)
			}
		}
	}
}

func TestWeightedHeavyAmongMany(t *testing.T) {
	weights := slices.Repeat([]int{1}, 1000)
	weights[500] = 999
	list := endpointsWith(weights...)
	s := sequence(balance.Weighted().Build(list), list, 3996)
	for at := 2; at < len(s); at++ {
		if s[at] == 500 && s[at-1] == 500 && s[at-2] == 500 {
			t.Fatalf("the endpoint with half of the weight has three turns in a row at %d", at)
		}
	}
}

func TestWeightedIsExactUnderConcurrency(t *testing.T) {
	weights := []int{1, 2, 3, 50, 44}
	list := endpointsWith(weights...)
	counts := concurrentPicks(balance.Weighted().Build(list), list, 8, 1000)
	for i, n := range counts {
		if want := 80 * weights[i]; n != want {
			t.Errorf("endpoint %d with weight %d was picked %d times: want %d", i, weights[i], n, want)
		}
	}
}

func TestWeightedZeroWeightIsTheDefault(t *testing.T) {
	list := endpointsWith(0, 50)
	if got := picks(balance.Weighted().Build(list), list, 3); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("a round has %v: want [2 1], as no weight means 100", got)
	}
}

// A round of more than 65,536 turns is not laid out, but nearly as even.
func TestWeightedIsNearlyEvenWithHugeSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1, 1_000_000))
		weights := append(rapid.SliceOfN(weight, 1, 12).Draw(t, "weights"), 999_983)
		list := endpointsWith(weights...)
		s := sequence(balance.Weighted().Build(list), list, 20_000)
		checkEven(t, s, shares(weights), 10)
	})
}

func TestWeightedIsNearlyEvenForLong(t *testing.T) {
	for _, weights := range [][]int{
		{1, 1_000_000},
		{1_000_000, 618_034, 381_966},
		{100_003, 1, 7, 65_537, 400_000, 31},
	} {
		list := endpointsWith(weights...)
		s := sequence(balance.Weighted().Build(list), list, 1_000_000)
		checkEven(t, s, shares(weights), 10)
	}
}

func TestWeightedOfManyEndpoints(t *testing.T) {
	list := endpointsWith(make([]int, maxTurns+1)...) // equal weights already make the round too long
	for i, n := range picks(balance.Weighted().Build(list), list, 5*len(list)) {
		if math.Abs(float64(n)-5) > 4 {
			t.Fatalf("endpoint %d was picked %d times: want about 5", i, n)
		}
	}
}

// maxTurns is the length of the longest round that is laid out.
const maxTurns = 65_536

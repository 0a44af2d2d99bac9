package balance_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
)

// The places of the table follow the weights exactly.
func TestMaglevFollowsWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 1000), 2, 20).Draw(t, "weights")
		list := endpointsWith(weights...)
		picker := balance.Maglev().Build(list)
		const n = 5_000
		counts := make([]int, len(list))
		for i := range n {
			counts[slices.Index(list, picker.Pick(keyed(i)))]++
		}
		wantShares(t, counts, shares(weights), n)
	})
}

// When one of n leaves, hardly more than its share of the keys moves.
func TestMaglevMovesLittle(t *testing.T) {
	for _, count := range []int{2, 3, 10, 50} {
		list := endpointsWith(make([]int, count)...)
		const n = 20_000
		before := owners(balance.Maglev().Build(list), n)
		for _, out := range []int{0, count / 2, count - 1} {
			after := owners(balance.Maglev().Build(slices.Delete(slices.Clone(list), out, out+1)), n)
			moved := 0
			for i := range before {
				if before[i] != after[i] {
					moved++
				}
			}
			share := 1 / float64(count)
			if got := float64(moved) / n; got > share*1.1+.03 {
				t.Errorf("one of %d leaves, and %.4f of the keys move: want hardly more than %.4f", count, got, share)
			}
		}
	}
}

func TestMaglevSendsAKeyToItsOwnEndpointHoweverBusy(t *testing.T) {
	list := endpointsWith(1, 1, 1)
	picker := balance.Maglev().Build(list)
	own := picker.Pick(keyed(1))
	for range 1000 {
		own.Begin()
	}
	if picker.Pick(keyed(1)) != own {
		t.Error("the key goes to another endpoint")
	}
}

func TestMaglevFurtherAttemptsAgree(t *testing.T) {
	list := endpointsWith(make([]int, 10)...)
	a, b := balance.Maglev().Build(list), balance.Maglev().Build(list)
	for i := range 200 {
		r := keyed(i)
		r.Tried = []*balance.Endpoint{a.Pick(r)}
		if a.Pick(r) != b.Pick(r) {
			t.Fatalf("the second attempts of key %d go to two endpoints", i)
		}
	}
}

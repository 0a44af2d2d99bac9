package balance_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
)

// Every balancer that uses weights gives an endpoint that is p percent warm p percent of the calls
// that it would have by its weight.
func TestWarmthIsAPartOfTheWeight(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for seconds")
	}
	for _, b := range []balance.Balancer{
		balance.Random(), balance.Weighted(), balance.LeastActive(), balance.P2C(), balance.Ping(), balance.Maglev(),
		balance.LocalFirst(munich), balance.Closest(munich),
	} {
		t.Run(b.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				weights := rapid.SliceOfN(rapid.IntRange(1, 50), 17, 25).Draw(t, "weights")
				warmth := rapid.SliceOfN(rapid.IntRange(1, 100), len(weights), len(weights)).Draw(t, "warmth")
				list := measured(endpointsWith(weights...), 0)
				for i, e := range list {
					e.SetWarmth(warmth[i])
					if e.Warmth() != warmth[i] {
						t.Fatalf("warmth %d: want %d", e.Warmth(), warmth[i])
					}
					weights[i] *= warmth[i]
				}
				const n = 5000
				counts := make([]int, len(list))
				picker := b.Build(list)
				for k := range n {
					counts[slices.Index(list, picker.Pick(keyed(k)))]++
				}
				wantShares(t, counts, shares(weights), n)
			})
		})
	}
}

func TestWarmthIsBounded(t *testing.T) {
	e := endpointsWith(1)[0]
	if e.Warmth() != 100 {
		t.Errorf("warmth %d at first: want 100", e.Warmth())
	}
	for _, c := range [][2]int{{0, 1}, {-5, 1}, {101, 100}, {37, 37}} {
		if e.SetWarmth(c[0]); e.Warmth() != c[1] {
			t.Errorf("warmth %d: want %d", e.Warmth(), c[1])
		}
	}
}

// Weighted is exact with warmth too.
func TestWeightedIsExactWhileWarmingUp(t *testing.T) {
	list := endpointsWith(100, 100, 100)
	list[2].SetWarmth(50)
	if got := picks(balance.Weighted().Build(list), list, 5); !slices.Equal(got, []int{2, 2, 1}) {
		t.Errorf("a round has %v: want [2 2 1]", got)
	}
}

// P2C gives a new instance its reduced share even under load.
func TestP2CWarmsUpUnderLoad(t *testing.T) {
	r := play(100, 100, 100)
	r.interval = 20 * time.Microsecond
	r.run(time.Second)
	r.list[2].SetWarmth(10)
	r.picker = balance.P2C().Build(r.list)
	if got := share(r.run(2*time.Second), 2); got > .12 {
		t.Errorf("a tenth of a weight gets %.3f of the calls: want about %.3f", got, 10./210)
	}
	r.list[2].SetWarmth(100)
	r.picker = balance.P2C().Build(r.list)
	if got := share(r.run(3*time.Second), 2); got < .28 {
		t.Errorf("once it is warm it gets %.3f of the calls: want about a third", got)
	}
}

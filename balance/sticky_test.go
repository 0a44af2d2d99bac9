package balance_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/balance"
)

// The client stays with its endpoint while that is in the list, whatever other endpoints join,
// leave and return.
func TestStickyStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := endpointsWith(1, 2, 3, 4, 5, 6)
		b := balance.Sticky()
		var own *balance.Endpoint
		for range 30 {
			var list []*balance.Endpoint
			for _, e := range all {
				if rapid.Bool().Draw(t, "is up") {
					list = append(list, e)
				}
			}
			picker := b.Build(list)
			e := picker.Pick(nil)
			if slices.Contains(list, own) && e != own {
				t.Fatalf("the client was with %s, which is up, and goes to %s", own.Instance().Address, e.Instance().Address)
			}
			for range 5 {
				if picker.Pick(&balance.Request{Method: "Other"}) != e {
					t.Fatal("two calls of one list go to two endpoints")
				}
			}
			if e != nil {
				own = e
			}
		}
	})
}

func TestStickyClientsSpreadByWeight(t *testing.T) {
	weights := []int{100, 200, 700}
	counts := make([]int, len(weights))
	const n = 5000
	for range n {
		list := endpointsWith(weights...)
		counts[slices.Index(list, balance.Sticky().Build(list).Pick(nil))]++
	}
	wantShares(t, counts, shares(weights), n)
}

// Two clients with the same balancer have their own endpoints, and do not see each other's choice.
func TestStickyClientsShareABalancer(t *testing.T) {
	b := balance.Sticky()
	mine, yours := endpointsWith(1, 1, 1, 1), endpointsWith(1, 1, 1, 1)
	own := b.Build(mine).Pick(nil)
	for range 50 {
		b.Build(yours)
		if b.Build(mine).Pick(nil) != own {
			t.Fatal("the client left its endpoint")
		}
	}
}

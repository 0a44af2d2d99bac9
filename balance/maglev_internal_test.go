package balance

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/anser-rpc/anser/registry"
)

func list(weights ...int) []*Endpoint {
	endpoints := make([]*Endpoint, len(weights))
	for i, w := range weights {
		endpoints[i] = NewEndpoint(registry.Instance{Service: "a", Address: fmt.Sprintf("10.0.0.%d:%d", i%250, 1+i/250), Weight: w})
	}
	return endpoints
}

// Each endpoint has its share of the places, with an error of less than one, and at least one.
func TestMaglevQuotas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1, registry.MaxWeight))
		weights := rapid.SliceOfN(weight, 2, 100).Draw(t, "weights")
		var sum, least float64 = 0, math.Inf(1)
		for _, w := range weights {
			sum += float64(w)
			least = min(least, float64(w))
		}
		size := tableSize(len(weights))
		var all uint64
		for i, q := range quotas(list(weights...), size) {
			all += q
			off := math.Abs(float64(q) - float64(size)*float64(weights[i])/sum)
			if q == 0 || least*float64(size) >= sum && off >= 1 {
				t.Fatalf("endpoint %d with weight %d has %d places, off by %.2f", i, weights[i], q, off)
			}
		}
		if all != size {
			t.Fatalf("%d places were given away of %d", all, size)
		}
	})
}

func TestMaglevTableSizes(t *testing.T) {
	for endpoints, want := range map[int]uint64{2: 65537, 1310: 65537, 1311: 524309, 10_486: 4194319} {
		if got := tableSize(endpoints); got != want {
			t.Errorf("%d places for %d endpoints: want %d", got, endpoints, want)
		}
	}
	var counts [3000]int
	weights := make([]int, len(counts))
	weights[0] = registry.MaxWeight
	for _, i := range newTable(list(weights...)) {
		counts[i]++
	}
	for i, c := range counts {
		if c == 0 {
			t.Fatalf("endpoint %d has no place", i)
		}
	}
}

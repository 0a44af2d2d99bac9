package balance

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// Maglev returns the balancer "maglev": calls with the same key go to the same endpoint, in every
// process with the same list, whatever that endpoint's load. The key is Request.Key, otherwise the
// hash of the encoded request. It uses the table of D. Eisenbud et al., "Maglev: a fast and
// reliable software network load balancer" (2016), extended by weights.
//
// The table has 65,537 places, distributed by weight with an error of less than one place per
// endpoint (an endpoint that would get none gets one). So shares are more even than
// ConsistentHash's and a pick is one table lookup; in return, when one of n endpoints leaves, a
// few keys of the others move, too, in total hardly more than 1/n of all. Above 1,310 endpoints
// the table is larger, with at least 50 places per endpoint.
//
// A further attempt of a call goes to the endpoint of the next place in the table.
func Maglev() Balancer { return algorithm{"maglev", newMaglev, false} }

type maglev struct {
	endpoints []*Endpoint
	table     []uint32
}

func newMaglev(endpoints []*Endpoint) Picker {
	// The table must not depend on the order of the list, so it is built in the order of the keys.
	order := make([]int, len(endpoints))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return strings.Compare(endpoints[a].Instance().Key(), endpoints[b].Instance().Key())
	})
	sorted := make([]*Endpoint, len(endpoints))
	for i, at := range order {
		sorted[i] = endpoints[at]
	}
	return &maglev{sorted, newTable(sorted)}
}

func (p *maglev) Pick(r *Request) *Endpoint {
	place, _ := bits.Mul64(r.KeyHash(), uint64(len(p.table)))
	i := int(p.table[place])
	first := p.endpoints[i]
	for k := 0; k < redraws && r.HasTried(p.endpoints[i]); k++ {
		if place++; place == uint64(len(p.table)) {
			place = 0
		}
		i = int(p.table[place])
	}
	return r.byKey(untriedFrom(p.endpoints, i, r), first)
}

// newTable assigns every place to an endpoint: in its turn an endpoint takes the first free place
// of its own permutation of all places. The order of turns is that of Weighted, so that at any
// time each endpoint has its share.
func newTable(endpoints []*Endpoint) []uint32 {
	size := tableSize(len(endpoints))
	type permutation struct{ place, skip uint64 }
	own := make([]permutation, len(endpoints))
	for i, e := range endpoints {
		h := Hash(e.Instance().Key())
		own[i] = permutation{h % size, 1 + scatter(h)%(size-1)}
	}
	table := make([]uint32, size)
	taken := make([]bool, size)
	for _, i := range newSchedule(quotas(endpoints, size), size) {
		p := &own[i]
		for taken[p.place] {
			if p.place += p.skip; p.place >= size {
				p.place -= size
			}
		}
		taken[p.place], table[p.place] = true, i
	}
	return table
}

// tableSize returns a prime, so that every skip reaches every place, with at least 50 places per
// endpoint. There are few such sizes: when the size changes, nearly all keys move.
func tableSize(endpoints int) uint64 {
	size := uint64(1) << 16
	for size < 50*uint64(endpoints) {
		size *= 8
	}
	for size++; !prime(size); size += 2 {
	}
	return size
}

func prime(n uint64) bool {
	for d := uint64(3); d*d <= n; d += 2 {
		if n%d == 0 {
			return false
		}
	}
	return true
}

// quotas distributes the places by weight. The rest after rounding down goes to the largest
// remainders; an endpoint without a place gets one from the endpoint with the most.
func quotas(endpoints []*Endpoint, size uint64) []uint64 {
	weights, sum := weightsOf(endpoints)
	quota := make([]uint64, len(weights))
	rest := make([]uint64, len(weights))
	left := size
	order := make([]int, len(weights))
	for i, w := range weights {
		high, low := bits.Mul64(w, size)
		quota[i], rest[i] = bits.Div64(high, low, sum)
		left -= quota[i]
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, i := range order[:left] {
		quota[i]++
	}
	most := slices.Index(quota, slices.Max(quota))
	for i := range quota {
		if quota[i] == 0 {
			quota[i]++
			if quota[most]--; i&63 == 0 {
				most = slices.Index(quota, slices.Max(quota))
			}
		}
	}
	return quota
}

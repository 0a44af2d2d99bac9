package balance

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// sometimes decides when a pick looks at all endpoints: on average once in n/16 picks for n
// endpoints, so that a pick looks at 16 on average. It keeps no counter, which concurrent picks
// would share.
type sometimes struct{ mask uint64 }

func newSometimes(endpoints int) sometimes {
	return sometimes{1<<bits.Len(uint(max(endpoints-1, 0)/16)) - 1}
}

func (s sometimes) now() bool { return s.mask == 0 || rand.Uint64()&s.mask == 0 }

// flight estimates the number of attempts in flight at all endpoints.
type flight struct {
	endpoints []*Endpoint
	due       sometimes
	_         [64]byte
	total     atomic.Int64 // last count, plus 1; 0: never counted
	_         [56]byte
}

func (f *flight) init(endpoints []*Endpoint) {
	f.endpoints, f.due = endpoints, newSometimes(len(endpoints))
}

func (f *flight) estimate() int64 {
	if t := f.total.Load(); t != 0 && !f.due.now() {
		return t - 1
	}
	var sum int64
	for _, e := range f.endpoints {
		sum += max(e.Active(), 0)
	}
	f.total.Store(sum + 1)
	return sum
}

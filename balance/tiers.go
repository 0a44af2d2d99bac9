package balance

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// tiered prefers endpoints in tiers: it chooses from the first tier with room.
type tiered struct {
	tiers []tier
	full  float64 // attempts at which an endpoint of mean weight is busy
	rest  Picker  // used if no tier has room

	_     [64]byte
	start atomic.Int64 // the tier beyond the first ones in which the last pick found room
	_     [56]byte
}

// tier is a set of equally good endpoints.
type tier struct {
	reason  Reason
	loads   []load
	sampler sampler // used if it has more endpoints than a pick looks at
}

// nearTiers is the number of tiers that every pick looks at. If each endpoint is a tier of its
// own, a pick would look at a thousand of them when all are busy; so beyond these it begins where
// the last one found room, one tier earlier so that it can move back, and looks at as many again.
const nearTiers = 8

// newTiered sorts endpoints into tiers by rank, lower ones first. A tier includes ranks up to its
// lowest one plus width. reason says why an endpoint of a tier is picked, by the lowest rank of the
// tier.
func newTiered(endpoints []*Endpoint, full float64, rank func(*Endpoint) float64, width float64, reason func(first bool, lowest float64) Reason) Picker {
	weights, sum := weightsOf(endpoints)
	mean := float64(sum) / float64(len(endpoints))
	ranks := make([]float64, len(endpoints))
	order := make([]int, len(endpoints))
	for i, e := range endpoints {
		ranks[i], order[i] = rank(e), i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ranks[a] < ranks[b]:
			return -1
		case ranks[a] > ranks[b]:
			return 1
		}
		return 0
	})
	p := &tiered{full: full, rest: newLeastActive(endpoints)}
	for begin := 0; begin < len(order); {
		lowest := ranks[order[begin]]
		end := begin
		for end < len(order) && (ranks[order[end]] == lowest || ranks[order[end]]-lowest <= width) {
			end++
		}
		t := newTier(endpoints, order[begin:end], weights, mean)
		t.reason = reason(begin == 0, lowest)
		p.tiers = append(p.tiers, t)
		begin = end
	}
	return p
}

func newTier(endpoints []*Endpoint, members []int, weights []uint64, mean float64) tier {
	var t tier
	var sum uint64
	own := make([]uint64, len(members))
	for i, at := range members {
		own[i] = weights[at]
		sum += own[i]
		t.loads = append(t.loads, load{endpoints[at], mean / float64(own[i])})
	}
	if len(members) > scanLimit {
		t.sampler = newSampler(own, sum)
	}
	return t
}

func (p *tiered) Pick(r *Request) *Endpoint {
	near := min(len(p.tiers), nearTiers)
	for i := range near {
		if e := p.tiers[i].withRoom(r, p.full); e != nil {
			return r.because(p.tiers[i].reason, e)
		}
	}
	if near < len(p.tiers) {
		last := int(p.start.Load())
		begin := max(last-1, near)
		for i := begin; i < min(begin+nearTiers, len(p.tiers)); i++ {
			if e := p.tiers[i].withRoom(r, p.full); e != nil {
				p.remember(last, i)
				return r.because(p.tiers[i].reason, e)
			}
		}
		p.remember(last, min(begin+nearTiers, len(p.tiers)-1))
	}
	return p.rest.Pick(r)
}

func (p *tiered) remember(last, i int) {
	if i != last {
		p.start.Store(int64(i))
	}
}

// withRoom returns the least loaded endpoint of the tier that has room and that the call has not
// tried. Of a large tier it looks at a few, drawn by weight: when these are busy, nearly all are.
func (t *tier) withRoom(r *Request, full float64) *Endpoint {
	if len(t.loads) > scanLimit {
		return t.someWithRoom(r, full)
	}
	var best *Endpoint
	var least float64
	x := rand.Uint64()
	for i := range t.loads {
		l := &t.loads[i]
		active := float64(l.endpoint.Active())
		if active*l.each >= full || r.HasTried(l.endpoint) {
			continue
		}
		x = x*6364136223846793005 + 1442695040888963407
		if load := (active + float64(x>>32)/(1<<32)) * l.each; best == nil || load < least {
			best, least = l.endpoint, load
		}
	}
	return best
}

func (t *tier) someWithRoom(r *Request, full float64) *Endpoint {
	var best *Endpoint
	least := full
	for range samples {
		l := &t.loads[t.sampler.draw(rand.Uint64())]
		if load := float64(l.endpoint.Active()) * l.each; load < least && !r.HasTried(l.endpoint) {
			best, least = l.endpoint, load
		}
	}
	return best
}

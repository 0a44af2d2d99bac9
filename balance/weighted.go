package balance

import "math/bits"

// maxSchedule is the maximum number of turns of a schedule: 256 KiB, built in a few milliseconds.
const maxSchedule = 1 << 16

// Weighted returns the balancer "weighted": smooth weighted round robin. An endpoint's turns are
// spread as evenly as its weight allows, not bunched.
//
// Let n be the sum of the weights, divided by their greatest common divisor. In any n consecutive
// first attempts each endpoint gets exactly its weight, even under concurrency: the whole round is
// laid out when the picker is built, and a pick takes the next turn. Within a round no endpoint is
// a whole turn ahead of its share or behind it. A further attempt of a call also takes a turn, and
// skips endpoints that it has tried.
//
// If n exceeds 65,536, no round is laid out. Turns then follow a sequence that is nearly as even
// and needs no memory: in any run of picks an endpoint's error is a few turns at most, growing
// with the logarithm of the run's length (below ten in a million picks).
func Weighted() Balancer { return algorithm{"weighted", newWeighted, true} }

func newWeighted(endpoints []*Endpoint) Picker {
	weights, sum := reduced(weightsOf(endpoints))
	if sum > maxSchedule {
		p := &spread{endpoints: endpoints, ranges: newRanges(weights, sum)}
		p.turn.start(1 << 63)
		return p
	}
	p := &scheduled{endpoints: endpoints, schedule: newSchedule(weights, sum)}
	p.turn.start(sum)
	return p
}

// reduced divides the weights and their sum by the greatest common divisor of the weights.
func reduced(weights []uint64, sum uint64) ([]uint64, uint64) {
	var divisor uint64
	for _, w := range weights {
		for w != 0 {
			divisor, w = w, divisor%w
		}
	}
	for i := range weights {
		weights[i] /= divisor
	}
	return weights, sum / divisor
}

// scheduled picks from a round laid out in advance.
type scheduled struct {
	endpoints []*Endpoint
	schedule  []uint32 // indexes of endpoints, one per turn of a round
	turn      turn
}

func (p *scheduled) Pick(r *Request) *Endpoint {
	t := int(p.turn.take() % uint64(len(p.schedule)))
	i := int(p.schedule[t])
	for k := 0; k < redraws && r.HasTried(p.endpoints[i]); k++ {
		if t++; t == len(p.schedule) {
			t = 0
		}
		i = int(p.schedule[t])
	}
	return r.because(PickedInTurn, untriedFrom(p.endpoints, i, r))
}

// spread picks by the Weyl sequence of the golden ratio, mapped to the concatenated weights. Of
// all sequences of its kind it leaves the smallest gaps, whatever the lengths of the ranges.
type spread struct {
	endpoints []*Endpoint
	ranges    ranges
	turn      turn
}

// golden is 2^64 divided by the golden ratio.
const golden = 0x9E3779B97F4A7C15

func (p *spread) Pick(r *Request) *Endpoint {
	t := p.turn.take()
	i := p.ranges.find(t * golden)
	for k := uint64(1); k <= redraws && r.HasTried(p.endpoints[i]); k++ {
		i = p.ranges.find((t + k) * golden)
	}
	return r.because(PickedInTurn, untriedFrom(p.endpoints, i, r))
}

// ranges holds the concatenated weights, with a guide that narrows the search to a few of them.
type ranges struct {
	ends  []uint64 // per index, the end of its range
	guide []uint32 // per equal part of the whole, the first index whose range reaches into it
}

func newRanges(weights []uint64, sum uint64) ranges {
	n := uint64(len(weights))
	r := ranges{make([]uint64, n), make([]uint32, n+1)}
	var end, part uint64
	for i, w := range weights {
		for ; part <= n && end+w > part*sum/n; part++ {
			r.guide[part] = uint32(i)
		}
		end += w
		r.ends[i] = end
	}
	for ; part <= n; part++ {
		r.guide[part] = uint32(n - 1)
	}
	return r
}

// find returns the index whose range contains the point x/2^64 of the whole.
func (r ranges) find(x uint64) int {
	n := len(r.ends)
	point, _ := bits.Mul64(x, r.ends[n-1])
	part, _ := bits.Mul64(x, uint64(n))
	low, high := r.guide[part], r.guide[part+1]
	for low < high {
		if middle := (low + high) / 2; r.ends[middle] > point {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return int(low)
}

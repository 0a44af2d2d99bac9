package balance

import "math/bits"

// ring is the circle of D. Karger et al., "Consistent hashing and random trees" (1997): each
// endpoint has points on it in proportion to its weight, and a key belongs to the first point at
// or after its own place. An endpoint's points depend only on its own key and weight, so when one
// leaves, only its own keys move.
type ring struct {
	points []uint64 // sorted: a place in the upper bits, the index of an endpoint in the lower ones
	guide  []uint32 // per equal part of the circle, the first point in it or after it
	shift  int      // maps a place to the number of its part
}

const (
	indexBits = 22
	placeMask = ^uint64(1<<indexBits - 1)
	maxPoints = 1 << 22
)

func newRing(endpoints []*Endpoint) ring {
	n := min(len(endpoints), 1<<indexBits)
	endpoints = endpoints[:n]
	counts := pointCounts(endpoints)
	var all int
	for _, c := range counts {
		all += c
	}
	bitsOfPart := min(bits.Len(uint(all)), 26)
	r := ring{make([]uint64, all), make([]uint32, 1<<bitsOfPart+1), 64 - bitsOfPart}

	// A counting sort by the parts, which the guide needs anyway.
	unsorted := make([]uint64, 0, all)
	for i, e := range endpoints {
		own := Hash(e.Instance().Key())
		for j := range counts[i] {
			p := scatter(own+uint64(j)*golden)&placeMask | uint64(i)
			unsorted = append(unsorted, p)
			r.guide[p>>r.shift+1]++
		}
	}
	for part := 1; part < len(r.guide); part++ {
		r.guide[part] += r.guide[part-1]
	}
	filled := make([]uint32, len(r.guide))
	for _, p := range unsorted {
		part := p >> r.shift
		at := r.guide[part] + filled[part]
		filled[part]++
		for ; at > r.guide[part] && r.points[at-1] > p; at-- {
			r.points[at] = r.points[at-1]
		}
		r.points[at] = p
	}
	return r
}

// pointCounts returns the number of points per endpoint, which is its weight. With the default of
// 100 an endpoint's share has a standard deviation of 10 %. If the mean weight is far from the
// default, all are scaled, by a power of 16 so that small changes of the list do not move every
// point.
func pointCounts(endpoints []*Endpoint) []int {
	var sum float64
	for _, e := range endpoints {
		sum += float64(e.weight()) / float64(e.Warmth())
	}
	mean := sum / float64(len(endpoints))
	scale := 1.0
	for ; mean*scale < 25; scale *= 16 {
	}
	for ; mean*scale >= 400 || mean*scale >= 1 && sum*scale > maxPoints; scale /= 16 {
	}
	counts := make([]int, len(endpoints))
	for i, e := range endpoints {
		counts[i] = max(int(float64(e.weight())*scale/100+.5), 1)
	}
	return counts
}

// find returns the index of the point of a key with the hash x.
func (r *ring) find(x uint64) int {
	part := x >> r.shift
	i, end := int(r.guide[part]), int(r.guide[part+1])
	for i < end && r.points[i] < x {
		i++
	}
	if i == len(r.points) {
		return 0
	}
	return i
}

// owner returns the index of the endpoint of point i.
func (r *ring) owner(i int) int { return int(r.points[i] &^ placeMask) }

// next returns the index of the point after i.
func (r *ring) next(i int) int {
	if i++; i < len(r.points) {
		return i
	}
	return 0
}

package balance

import "math/bits"

// weightsOf returns the effective weights of the endpoints and their sum. Each is positive, and at
// most 100 × registry.MaxWeight.
func weightsOf(endpoints []*Endpoint) (weights []uint64, sum uint64) {
	weights = make([]uint64, len(endpoints))
	warm := true
	for i, e := range endpoints {
		weights[i] = e.weight()
		warm = warm && weights[i]%100 == 0
	}
	for i := range weights {
		if warm {
			weights[i] /= 100
		}
		sum += weights[i]
	}
	return weights, sum
}

// sampler draws indexes in proportion to weights, in constant time: the alias method of A. J.
// Walker (1977), with the table built as in M. D. Vose (1991).
type sampler struct {
	columns []column
}

// A column belongs to its own index up to the cut, and to one other index above it.
type column struct {
	cut   uint32 // the column's own share, in units of 2^-32, less one unit
	other uint32
}

// newSampler returns a sampler for the weights, which must be positive and add up to sum.
func newSampler(weights []uint64, sum uint64) sampler {
	n := uint64(len(weights))
	columns := make([]column, n)
	rest := make([]uint64, n) // per weight, the part not yet assigned to a column; a column holds sum
	var small, large []int
	for i, w := range weights {
		columns[i] = column{cut: 1<<32 - 1, other: uint32(i)}
		rest[i] = w * n
		if rest[i] < sum {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		share, _ := bits.Div64(rest[s]>>32, rest[s]<<32, sum)
		columns[s] = column{cut: uint32(max(share, 1) - 1), other: uint32(l)}
		rest[l] -= sum - rest[s]
		if rest[l] < sum {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	return sampler{columns}
}

// draw returns the index for x, a random number.
func (s sampler) draw(x uint64) int {
	i := scale(x>>32, len(s.columns))
	if c := s.columns[i]; uint32(x) > c.cut {
		return int(c.other)
	}
	return i
}

// scale maps x, which is less than 2^32, to an index below n.
func scale(x uint64, n int) int { return int(x * uint64(n) >> 32) }

package balance

// newSchedule lays out a round of sum turns in which each index occurs as often as its weight. The
// weights are positive and add up to sum, which is less than 2^32.
//
// The k-th turn of index i must fall into its window, from floor(k*sum/w) to ceil((k+1)*sum/w).
// Serving the earliest deadline of the open windows first meets all of them (S. Baruah et al.,
// "Proportionate progress", 1996, for one processor), so at no point of the round is an index a
// whole turn ahead of its share or behind it. This takes O(sum log n); the usual way, which adds
// every weight in every turn, takes O(sum n), a second for a thousand endpoints.
func newSchedule(weights []uint64, sum uint64) []uint32 {
	schedule := make([]uint32, sum)
	done := make([]uint64, len(weights)) // turns each index has had
	opening := newCalendar(sum, len(weights))
	for i := len(weights) - 1; i >= 0; i-- {
		opening.add(0, i)
	}
	open := make(deadlines, 0, len(weights))
	for t := range sum {
		for i := opening.first[t]; i != noIndex; i = opening.next[i] {
			deadline := ((done[i]+1)*sum + weights[i] - 1) / weights[i]
			open.push(deadline<<32 | uint64(i))
		}
		i := uint32(open.pop())
		schedule[t] = i
		if done[i]++; done[i] < weights[i] {
			opening.add(max(done[i]*sum/weights[i], t+1), int(i))
		}
	}
	return schedule
}

// calendar lists, per turn, the indexes whose window opens there; an index has at most one window
// in it.
type calendar struct {
	first []uint32 // per turn, the first index, or noIndex
	next  []uint32 // per index, the next one of the same turn, or noIndex
}

const noIndex = 1<<32 - 1

func newCalendar(turns uint64, indexes int) calendar {
	c := calendar{make([]uint32, turns), make([]uint32, indexes)}
	for t := range c.first {
		c.first[t] = noIndex
	}
	return c
}

func (c calendar) add(turn uint64, index int) {
	c.next[index] = c.first[turn]
	c.first[turn] = uint32(index)
}

// deadlines is a binary min-heap. An entry holds a deadline in its upper bits and its index below,
// so equal deadlines come in the order of the list.
type deadlines []uint64

func (h *deadlines) push(x uint64) {
	*h = append(*h, x)
	s := *h
	i := len(s) - 1
	for i > 0 && s[(i-1)/2] > x {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = x
}

func (h *deadlines) pop() uint64 {
	s := *h
	top, x := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if x <= s[child] {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = x
	}
	return top
}

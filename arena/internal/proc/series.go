package proc

import "sort"

// Series is a figure at several moments, in the order of time. The zero value is empty. It is not
// safe for concurrent use.
type Series struct {
	at    []int64 // nanoseconds since 1970
	value []float64
}

// Add appends the figure at a moment, which must not be before the last one.
func (s *Series) Add(at int64, value float64) {
	s.at = append(s.at, at)
	s.value = append(s.value, value)
}

// Between returns by how much a counter grew between two moments. At moments between two samples
// it is taken to have grown evenly. ok is false when the samples do not reach from the one to the
// other.
func (s *Series) Between(from, to int64) (grown float64, ok bool) {
	a, ok1 := s.moment(from)
	b, ok2 := s.moment(to)
	return b - a, ok1 && ok2 && from <= to
}

// moment returns the figure at a moment.
func (s *Series) moment(t int64) (value float64, ok bool) {
	i := sort.Search(len(s.at), func(i int) bool { return s.at[i] >= t })
	switch {
	case i == len(s.at):
		return 0, false
	case s.at[i] == t:
		return s.value[i], true
	case i == 0:
		return 0, false
	}
	share := float64(t-s.at[i-1]) / float64(s.at[i]-s.at[i-1])
	return s.value[i-1] + share*(s.value[i]-s.value[i-1]), true
}

// Max returns the most that the samples between two moments say, and those on either side of them:
// a short measurement may have no sample inside.
func (s *Series) Max(from, to int64) float64 {
	first := sort.Search(len(s.at), func(i int) bool { return s.at[i] > from }) - 1
	most := 0.0
	for i := max(first, 0); i < len(s.at); i++ {
		most = max(most, s.value[i])
		if s.at[i] >= to {
			break
		}
	}
	return most
}

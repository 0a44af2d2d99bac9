package balance

import "cmp"

// sameDistance is how much farther than the nearest one, in kilometres, an instance may be to count
// as equally near.
const sameDistance = 10

// Closest returns the balancer "closest": the nearest endpoints by the latitude and longitude of their
// instances, on a great circle. Those that are less than 10 km farther away than the nearest share its
// calls as with LeastActive.
//
// When they are busy, with Here.Full attempts of this client each, calls go to the next nearest ones; as
// soon as one has room again, calls come back. When all are busy, LeastActive chooses among all. Instances
// without a position come after all others, and a further attempt of a call goes to the nearest that
// it has not tried. A client that does not know where it is cannot use it: Validate says so.
func Closest(here Here) Balancer {
	return placed{
		algorithm{"closest", func(endpoints []*Endpoint) Picker {
			return newTiered(endpoints, here.full(), func(e *Endpoint) float64 { return here.distance(e.Instance()) }, sameDistance)
		}, false},
		cmp.Or(here.checkPosition(), here.checkFull()),
	}
}

// placed is an algorithm with what is wrong with its Here, or nil.
type placed struct {
	algorithm
	mistake error
}

// Validate says what is wrong with the options of the balancer, or nil.
func (p placed) Validate() error { return p.mistake }

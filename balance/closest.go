package balance

import "cmp"

// sameDistance is the maximum difference in kilometres between instances that count as equally
// near.
const sameDistance = 10

// Closest returns the balancer "closest": the nearest endpoints by the latitude and longitude of
// their instances, on a great circle. Endpoints less than 10 km farther away than the nearest
// share its calls as with LeastActive.
//
// When they are busy, with Here.Full attempts of this client each, calls go to the next nearest
// ones; as soon as one of them has room again, calls return to it. When all are busy, LeastActive
// chooses among all. Instances without a position come last, and a further attempt of a call goes
// to the nearest instance that it has not tried. The client's own position is required: Validate
// returns an error without it.
func Closest(here Here) Balancer {
	return placed{
		algorithm{"closest", func(endpoints []*Endpoint) Picker {
			return newTiered(endpoints, here.full(), func(e *Endpoint) float64 { return here.distance(e.Instance()) }, sameDistance, nearest)
		}, false},
		cmp.Or(here.checkPosition(), here.checkFull()),
	}
}

func nearest(first bool, _ float64) Reason {
	if first {
		return PickedNearest
	}
	return PickedFarther
}

// placed is an algorithm with the error of its Here, or nil.
type placed struct {
	algorithm
	mistake error
}

// Validate returns an error if the options of the balancer are invalid.
func (p placed) Validate() error { return p.mistake }

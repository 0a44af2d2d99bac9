package balance

// ConsistentHash returns the balancer "consistent_hash": calls with the same key go to the same
// endpoint, in every process that has the same list. When an endpoint leaves, its keys are shared out
// among the others, and no other key moves; one that comes takes its share from all of them. The
// key is Request.Key, else the encoded request.
//
// Loads are bounded (V. Mirrokni, M. Thorup and M. Zadimoghaddam, "Consistent hashing with bounded
// loads", 2016): while an endpoint has both eight attempts of this client in flight and 1.25 times what
// its weight would give it of all of them, its keys go to the next endpoint on the circle that has
// room. So one hot key cannot drown one instance, and rare calls always find their own. Above 16 endpoints the
// sum of the attempts is an estimate, counted anew once in about so many picks as a sixteenth of the
// endpoints. Where calls must reach their own endpoint whatever it has to do, use Maglev.
//
// A further attempt of a call goes to the next endpoint on the circle, so that it is the same for all
// calls with the key.
func ConsistentHash() Balancer { return algorithm{"consistent_hash", newConsistentHash} }

// The attempts in flight that an endpoint may always have, and how far above its share it may be.
const (
	roomAlways = 8
	roomFactor = 1.25
)

// maxWalk bounds how many points of the circle one pick looks at.
const maxWalk = 64

type consistentHash struct {
	endpoints []*Endpoint
	ring      ring
	bounds    []float64 // of each endpoint, how many attempts it may have for each that is in flight
	flight    flight
}

func newConsistentHash(endpoints []*Endpoint) Picker {
	p := &consistentHash{endpoints: endpoints, ring: newRing(endpoints), bounds: make([]float64, len(endpoints))}
	weights, sum := weightsOf(endpoints)
	for i, w := range weights {
		p.bounds[i] = roomFactor * float64(w) / float64(sum)
	}
	p.flight.init(endpoints)
	return p
}

func (p *consistentHash) Pick(r *Request) *Endpoint {
	point := p.ring.find(r.KeyHash())
	i := p.ring.owner(point)
	if e := p.endpoints[i]; !r.HasTried(e) && p.hasRoom(i) {
		return e
	}
	return p.further(r, point)
}

// hasRoom reports whether endpoint i may take one more attempt.
func (p *consistentHash) hasRoom(i int) bool {
	active := p.endpoints[i].Active()
	return active < roomAlways || float64(active) < p.bounds[i]*float64(p.flight.estimate()+1)
}

// further walks on from a point whose endpoint was tried or is full. If there is room nowhere, which
// takes picks that overlap, the least loaded endpoint that it met gets the attempt.
func (p *consistentHash) further(r *Request, point int) *Endpoint {
	var best *Endpoint
	var least float64
	look := func(i int) bool {
		e := p.endpoints[i]
		if r.HasTried(e) {
			return false
		}
		if p.hasRoom(i) {
			best = e
			return true
		}
		if load := float64(e.Active()) / p.bounds[i]; best == nil || load < least {
			best, least = e, load
		}
		return false
	}
	first, last := p.ring.owner(point), -1
	for range min(maxWalk, len(p.ring.points)) {
		i := p.ring.owner(point)
		if i != last && look(i) {
			return best
		}
		last, point = i, p.ring.next(point)
	}
	// Where few endpoints have nearly all points, the others are not on the way.
	for k := range min(maxWalk, len(p.endpoints)) {
		if look((first + k) % len(p.endpoints)) {
			return best
		}
	}
	if best == nil {
		return untriedFrom(p.endpoints, first, r)
	}
	return best
}

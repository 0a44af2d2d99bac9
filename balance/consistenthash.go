package balance

import "math/rand/v2"

// ConsistentHash returns the balancer "consistent_hash": calls with the same key go to the same
// endpoint, in every process with the same list. When an endpoint leaves, its keys are distributed
// among the others, and no other key moves; a new endpoint takes its share from all of them. The
// key is Request.Key, otherwise the hash of the encoded request.
//
// Loads are bounded (V. Mirrokni, M. Thorup and M. Zadimoghaddam, "Consistent hashing with bounded
// loads", 2016): while an endpoint has both eight attempts of this client in flight and 1.25 times
// its share by weight of all of them, its keys go to the next endpoint on the circle that has
// room. So one hot key cannot overload one instance, and other calls always find their own. Above
// 16 endpoints the sum of the attempts is an estimate, recounted on average once in n/16 picks for
// n endpoints. If calls must reach their own endpoint whatever its load, use Maglev.
//
// A further attempt of a call goes to the next endpoint on the circle, which is the same for all
// calls with the key.
func ConsistentHash() Balancer { return algorithm{"consistent_hash", newConsistentHash, false} }

// The number of attempts in flight that an endpoint may always have, and how far it may exceed its
// share.
const (
	roomAlways = 8
	roomFactor = 1.25
)

// How many points a pick looks at: those after its own, then others; and finally how many
// endpoints. With this factor at least a fifth of the endpoints have room, so few picks get that
// far.
const (
	maxWalk  = 8
	maxJumps = 32
	maxScan  = 64
)

type consistentHash struct {
	endpoints []*Endpoint
	ring      ring
	bounds    []float64 // per endpoint, its limit per attempt in flight at all endpoints
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
	x := r.KeyHash()
	point := p.ring.find(x)
	i := p.ring.owner(point)
	if e := p.endpoints[i]; !r.HasTried(e) && p.hasRoom(i) {
		return r.because(PickedByKey, e)
	}
	return r.byKey(p.further(r, x, point), p.endpoints[i])
}

// hasRoom reports whether endpoint i may take one more attempt.
func (p *consistentHash) hasRoom(i int) bool {
	active := p.endpoints[i].Active()
	return active < roomAlways || float64(active) < p.bounds[i]*float64(p.flight.estimate()+1)
}

// further walks on from the point of a key whose endpoint was tried or is full. A key so hot that
// its neighbours are full, too, jumps to other places of the circle, the same ones each time:
// otherwise its overflow would fill one stretch of the circle (J. Chen, B. Coleman and A.
// Shrivastava, "Revisiting consistent hashing with bounded loads", 2021). If none has room, which
// happens only with concurrent picks, the attempt goes to the least loaded endpoint that was
// found.
func (p *consistentHash) further(r *Request, x uint64, point int) *Endpoint {
	s := search{p: p, r: r}
	first := p.ring.owner(point)
	for range maxWalk {
		if s.look(p.ring.owner(point)) {
			return s.best
		}
		point = p.ring.next(point)
	}
	for k := range uint64(maxJumps) {
		if s.look(p.ring.owner(p.ring.find(scatter(x + (k+1)*golden)))) {
			return s.best
		}
	}
	// If a few endpoints have nearly all points, the walk has missed the others; and a single key
	// may fill all places to which it jumps.
	n := len(p.endpoints)
	for k := range min(maxScan, n) {
		i := (first + k) % n
		if n > maxScan {
			i = rand.IntN(n)
		}
		if s.look(i) {
			return s.best
		}
	}
	if s.best == nil {
		return untriedFrom(p.endpoints, first, r)
	}
	return s.best
}

// search looks at endpoints until it finds one with room that was not tried.
type search struct {
	p     *consistentHash
	r     *Request
	best  *Endpoint // the endpoint with room, otherwise the least loaded one
	least float64
}

func (s *search) look(i int) bool {
	e := s.p.endpoints[i]
	if s.r.HasTried(e) {
		return false
	}
	if s.p.hasRoom(i) {
		s.best = e
		return true
	}
	if load := float64(e.Active()) / s.p.bounds[i]; s.best == nil || load < s.least {
		s.best, s.least = e, load
	}
	return false
}

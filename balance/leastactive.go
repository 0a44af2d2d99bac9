package balance

import "math/rand/v2"

// scanLimit is the number of endpoints up to which LeastActive looks at all of them. Each is a
// cache line written by other processors: with attempts on two processors a scan of 16 took 84 ns
// and one of 64 took 322 ns, while four samples take 47 ns for any number of endpoints.
const scanLimit = 16

// samples is the number of endpoints it looks at above that limit.
const samples = 4

// LeastActive returns the balancer "least_active": the endpoint with the fewest attempts of this
// client in flight for its weight.
//
// Up to 16 endpoints it looks at all of them and picks the least (active+u)/weight, where u is
// drawn from 0 to 1 for each. With equal weights this is one of the endpoints with the fewest
// attempts, each with the same probability; with different weights an idle client uses all
// endpoints, each about by its weight, whereas counting the new attempt in full would send all
// calls to the heaviest, and not counting it would always give the lightest a call.
//
// Above that, it draws four endpoints by weight and picks the least active/weight among them, the
// first one on a tie. The longest queue is then hardly longer than with a full scan (M.
// Mitzenmacher, "The power of two choices in randomized load balancing", 1996), and the cost of a
// pick does not depend on the number of endpoints.
func LeastActive() Balancer { return algorithm{"least_active", newLeastActive, true} }

// A load is an endpoint with the factor of its attempts.
type load struct {
	endpoint *Endpoint
	each     float64 // 1 for the mean weight, less for a larger one
}

func newLeastActive(endpoints []*Endpoint) Picker {
	weights, sum := weightsOf(endpoints)
	loads := make([]load, len(endpoints))
	mean := float64(sum) / float64(len(endpoints))
	for i, e := range endpoints {
		loads[i] = load{e, mean / float64(weights[i])}
	}
	if len(endpoints) <= scanLimit {
		return &leastOfAll{loads}
	}
	return &leastOfSome{endpoints, loads, newSampler(weights, sum)}
}

// leastOfAll looks at every endpoint.
type leastOfAll struct{ loads []load }

func (p *leastOfAll) Pick(r *Request) *Endpoint {
	r.because(PickedLeastLoaded, nil)
	if e := p.least(r); e != nil {
		return e
	}
	return p.least(nil)
}

// least returns the least loaded endpoint that the call has not tried, or nil.
func (p *leastOfAll) least(r *Request) *Endpoint {
	var best *Endpoint
	var least float64
	x := rand.Uint64()
	for i := range p.loads {
		l := &p.loads[i]
		if r.HasTried(l.endpoint) {
			continue
		}
		// A generator per pick, seeded by a good one, takes a nanosecond per number.
		x = x*6364136223846793005 + 1442695040888963407
		u := float64(x>>32) / (1 << 32)
		if load := (float64(l.endpoint.Active()) + u) * l.each; best == nil || load < least {
			best, least = l.endpoint, load
		}
	}
	return best
}

// leastOfSome looks at a few endpoints.
type leastOfSome struct {
	endpoints []*Endpoint
	loads     []load
	sampler   sampler
}

func (p *leastOfSome) Pick(r *Request) *Endpoint {
	r.because(PickedLeastLoaded, nil)
	var best *Endpoint
	var least float64
	for range samples {
		l := &p.loads[p.sampler.draw(rand.Uint64())]
		if r.HasTried(l.endpoint) {
			continue
		}
		if load := float64(l.endpoint.Active()) * l.each; best == nil || load < least {
			best, least = l.endpoint, load
		}
	}
	if best == nil {
		return untriedFrom(p.endpoints, rand.IntN(len(p.endpoints)), r)
	}
	return best
}

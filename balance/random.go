package balance

import "math/rand/v2"

// Random returns the balancer "random": each pick is independent of all others, and an endpoint's
// probability is its share of the weights.
func Random() Balancer { return algorithm{"random", newRandom, true} }

type random struct {
	endpoints []*Endpoint
	sampler   sampler
}

func newRandom(endpoints []*Endpoint) Picker {
	return &random{endpoints, newSampler(weightsOf(endpoints))}
}

func (p *random) Pick(r *Request) *Endpoint {
	r.because(PickedByWeight, nil)
	e := p.endpoints[p.sampler.draw(rand.Uint64())]
	for range redraws {
		if !r.HasTried(e) {
			return e
		}
		e = p.endpoints[p.sampler.draw(rand.Uint64())]
	}
	return untriedFrom(p.endpoints, rand.IntN(len(p.endpoints)), r)
}

// redraws is how often a picker draws again for a call that has tried the drawn endpoint, before
// it takes the next endpoint in the list: this is bounded, but favours the neighbours of tried
// endpoints.
const redraws = 8

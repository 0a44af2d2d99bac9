package balance

import (
	"math/rand/v2"
	"time"
)

// P2C returns the balancer "p2c", the client's default: the better of two endpoints, drawn by
// weight, by
//
//	latency × (active + 1) / weight
//
// with the latency of Endpoint and the attempts of this client in flight. It takes no lock, its
// cost does not depend on the number of endpoints, and it does not herd clients onto the endpoint
// that is best at the moment (M. Mitzenmacher, "The power of two choices in randomized load
// balancing", 1996; the cost function is that of Finagle and Linkerd).
//
// Four things go beyond the formula:
//
//   - The 1 is not divided by the weight for the endpoint drawn first, nor for a second one that
//     is heavier than the mean. So an idle client distributes its calls by weight when latencies
//     are equal, and a light endpoint, such as a canary, does not get a call each time it is idle.
//   - If an endpoint has attempts in flight and has not answered for longer than its average, that
//     time is used instead. One that stalls loses its traffic at once, not at the first deadline.
//   - An endpoint without a sample gets one attempt, and uses the latency of its rival until that
//     ends.
//   - An endpoint that has had no sample for a second and loses is probed by a single attempt, and
//     while no answer comes at growing intervals, up to five seconds.
//
// It does not read a clock: the age of a sample is measured against the rival's.
func P2C() Balancer { return algorithm{"p2c", newP2C, true} }

// A candidate is an endpoint with the parts of the formula that depend on its weight.
type candidate struct {
	endpoint *Endpoint
	each     float64 // factor of an attempt in flight: 1 for the mean weight, less for a larger one
	rival    float64 // the value of the 1 in the formula for the endpoint drawn second
}

type p2c struct {
	candidates []candidate
	sampler    sampler
}

func newP2C(endpoints []*Endpoint) Picker {
	weights, sum := weightsOf(endpoints)
	p := &p2c{make([]candidate, len(endpoints)), newSampler(weights, sum)}
	mean := float64(sum) / float64(len(endpoints))
	for i, e := range endpoints {
		each := mean / float64(weights[i])
		p.candidates[i] = candidate{e, each, max(each, 1)}
	}
	return p
}

func (p *p2c) Pick(r *Request) *Endpoint {
	untried := r
	first := p.draw(untried, -1)
	if first < 0 {
		untried = nil // every endpoint was tried
		first = p.draw(untried, -1)
	}
	second := p.draw(untried, first)
	if second < 0 {
		return r.because(PickedOnly, p.candidates[first].endpoint)
	}
	return better(r, &p.candidates[first], &p.candidates[second])
}

// draw returns the index, other than not, of an endpoint that the call has not tried, or -1 if
// there is none.
func (p *p2c) draw(r *Request, not int) int {
	n := len(p.candidates)
	if n > 2 || not < 0 {
		for range redraws {
			if i := p.sampler.draw(rand.Uint64()); i != not && !r.HasTried(p.candidates[i].endpoint) {
				return i
			}
		}
	}
	i := rand.IntN(n)
	for range n {
		if i != not && !r.HasTried(p.candidates[i].endpoint) {
			return i
		}
		if i++; i == n {
			i = 0
		}
	}
	return -1
}

// better returns the endpoint for the next attempt: the one with the lower cost, or one that is
// due for a probe. It sets the reason in r, which may be nil.
func better(r *Request, a, b *candidate) *Endpoint {
	fa, fb := unpack(a.endpoint.latency.Load()), unpack(b.endpoint.latency.Load())
	switch {
	case !fa.known() && !fb.known():
		fa.latency, fb.latency = 1, 1
	case !fa.known():
		if a.endpoint.claimFirst(fb.tick) {
			return r.because(PickedToProbe, a.endpoint)
		}
		fa = figures{fb.latency, a.endpoint.probed.Load()}
	case !fb.known():
		if b.endpoint.claimFirst(fa.tick) {
			return r.because(PickedToProbe, b.endpoint)
		}
		fb = figures{fa.latency, b.endpoint.probed.Load()}
	}
	now := fa.tick
	if later(fb.tick, now) {
		now = fb.tick
	}
	winner, loser, old := a.endpoint, b.endpoint, fb
	if cost(b, b.rival, fb, now) < cost(a, 1, fa, now) {
		winner, loser, old = b.endpoint, a.endpoint, fa
	}
	if since(old.tick, now) >= probeAfter && loser.claimProbe(old.tick, now) {
		return r.because(PickedToProbe, loser)
	}
	return r.because(PickedBetter, winner)
}

// cost is the expected duration of a new attempt in nanoseconds.
func cost(c *candidate, one float64, f figures, now uint32) float64 {
	active := c.endpoint.Active()
	latency := float64(f.latency)
	// One tick less, because the two samples may lie at opposite ends of their ticks.
	if silent := since(f.tick, now); active > 0 && silent > 1 {
		latency = max(latency, float64(int64(silent-1)<<tickShift))
	}
	return latency * (float64(active)*c.each + one)
}

// The shortest and the longest time between probes, in ticks.
var (
	probeAfter = ticks(time.Second)
	probeMax   = ticks(5 * time.Second)
)

// probeOdds is the reciprocal of the probability that a pick probes an endpoint that is due. If
// calls are so rare that every endpoint is due whenever it is drawn, most picks still follow the
// cost.
const probeOdds = 8

// claimFirst reports whether the caller may send the first attempt to an endpoint without a
// sample.
func (e *Endpoint) claimFirst(now uint32) bool {
	last := e.probed.Load()
	if last != 0 && since(last, now) < probeAfter {
		return false
	}
	return e.probed.CompareAndSwap(last, max(now, 1))
}

// claimProbe reports whether the caller may probe an endpoint whose latest sample is of tick old.
func (e *Endpoint) claimProbe(old, now uint32) bool {
	if rand.Uint32N(probeOdds) != 0 {
		return false
	}
	last := e.probed.Load()
	if last != 0 && later(last, old) {
		// A probe is in flight or ended without a sample: wait as long again as it was delayed.
		if since(last, now) < min(max(last-old, probeAfter), probeMax) {
			return false
		}
	}
	return e.probed.CompareAndSwap(last, max(now, 1))
}

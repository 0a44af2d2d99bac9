package balance

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
)

// Ping returns the balancer "ping": each pick is independent of all others, and an endpoint's
// probability is proportional to its weight divided by its latency, or by 16 times the lowest
// latency if its own is higher. The latency is Endpoint's average over the calls: no extra
// requests are sent to measure it.
//
// The bound of 16 keeps some calls going to every endpoint, and the answer to such a call replaces
// the average, so that the recovery of a slow endpoint is noticed. An endpoint without a sample
// counts as one with the lowest latency. Above 16 endpoints the lowest latency is looked up on
// average once in n/16 picks for n endpoints.
//
// P2C, which also considers the calls in flight, avoids a stalled endpoint sooner. Ping is for
// applications that need shares predictable from the latencies.
func Ping() Balancer { return algorithm{"ping", newPing, true} }

const (
	maxSlower = 16 // maximum ratio to the lowest latency
	maxDraws  = 64 // if all others are that slow, one pick in 60 needs more
)

type ping struct {
	endpoints []*Endpoint
	sampler   sampler
	due       sometimes
	_         [64]byte
	lowest    atomic.Uint32 // of the latencies, as a float32; 0: never looked up, or none is known
	_         [60]byte
}

func newPing(endpoints []*Endpoint) Picker {
	return &ping{endpoints: endpoints, sampler: newSampler(weightsOf(endpoints)), due: newSometimes(len(endpoints))}
}

// Pick draws by weight, and accepts an endpoint with a probability of the lowest latency divided
// by its own.
func (p *ping) Pick(r *Request) *Endpoint {
	r.because(PickedByLatency, nil)
	lowest := math.Float32frombits(p.lowest.Load())
	if lowest == 0 || p.due.now() {
		lowest = p.lookUp()
	}
	var last *Endpoint
	for range maxDraws {
		e := p.endpoints[p.sampler.draw(rand.Uint64())]
		if r.HasTried(e) {
			continue
		}
		last = e
		f := unpack(e.latency.Load())
		slower := min(f.latency, maxSlower*lowest)
		if slower > lowest && rand.Float32()*slower >= lowest {
			continue
		}
		if slower < f.latency {
			e.probe(f)
		}
		return e
	}
	if last != nil {
		return last
	}
	return untriedFrom(p.endpoints, rand.IntN(len(p.endpoints)), r)
}

// probe lets the next sample replace the average of an endpoint, which would otherwise need
// minutes to forget an outage.
func (e *Endpoint) probe(f figures) {
	if next := max(f.tick+1, 1); e.probed.Load() != next {
		e.probed.Store(next)
	}
}

// lookUp returns the lowest known latency, or 0.
func (p *ping) lookUp() float32 {
	var lowest float32
	for _, e := range p.endpoints {
		if f := unpack(e.latency.Load()); f.known() && (lowest == 0 || f.latency < lowest) {
			lowest = f.latency
		}
	}
	p.lowest.Store(math.Float32bits(lowest))
	return lowest
}

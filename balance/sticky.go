package balance

import (
	"math/rand/v2"
	"sync/atomic"
)

// Sticky returns the balancer "sticky": all calls of a client go to one endpoint for as long as it
// is in the list, which means that the instance is up and can be reached. The endpoint is drawn by
// weight, so that many clients spread. When it leaves, another one is drawn, and the client stays
// with that one even when the first comes back.
//
// Further attempts of a call go to other endpoints, and do not affect the next call.
func Sticky() Balancer { return new(stickiness) }

// stickiness numbers the choices, so that the latest one is known whatever endpoints are in the
// list.
type stickiness struct{ choices atomic.Uint64 }

func (*stickiness) Name() string { return "sticky" }

// Build records its choice in the endpoint, which outlives the picker and belongs to one client. A
// list of one is a choice, too: the client stays with that endpoint when others join.
func (s *stickiness) Build(endpoints []*Endpoint) Picker {
	if len(endpoints) == 0 {
		return few(nil)
	}
	at, last := -1, uint64(0)
	for i, e := range endpoints {
		if c := e.chosen.Load(); c > last {
			at, last = i, c
		}
	}
	if at < 0 {
		at = newSampler(weightsOf(endpoints)).draw(rand.Uint64())
	}
	endpoints[at].chosen.Store(s.choices.Add(1))
	return &sticky{endpoints, at}
}

type sticky struct {
	endpoints []*Endpoint
	at        int
}

func (p *sticky) Pick(r *Request) *Endpoint {
	e := untriedFrom(p.endpoints, p.at, r)
	if e != p.endpoints[p.at] {
		return r.because(PickedInstead, e)
	}
	return r.because(PickedKept, e)
}

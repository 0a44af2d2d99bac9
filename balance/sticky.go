package balance

import (
	"math/rand/v2"
	"sync/atomic"
)

// Sticky returns the balancer "sticky": all calls of a client go to one endpoint as long as that is in the
// list, which is as long as the instance is up and can be reached. The endpoint is drawn by weight, so
// that many clients spread. When it is gone another is drawn, and the client stays with that one, also
// when the first comes back.
//
// The further attempts of a call go to other endpoints, and change nothing for the next call.
func Sticky() Balancer { return new(stickiness) }

// stickiness counts choices, so that the latest one is known whichever endpoints are in the list.
type stickiness struct{ choices atomic.Uint64 }

func (*stickiness) Name() string { return "sticky" }

// Build leaves its choice on the endpoint, which outlives the picker and belongs to one client. A list of
// one is a choice too: who was alone keeps its clients when others come.
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

func (p *sticky) Pick(r *Request) *Endpoint { return untriedFrom(p.endpoints, p.at, r) }

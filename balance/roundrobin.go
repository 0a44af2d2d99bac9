package balance

import (
	"math/rand/v2"
	"sync/atomic"
)

// RoundRobin returns the balancer "round_robin": each endpoint in turn, whatever the weights. For
// n endpoints, any n consecutive first attempts visit each of them once, even under concurrency; a
// further attempt of a call also takes a turn, and skips endpoints that it has tried. A picker
// begins at a random endpoint, so that clients that start together do not move in step.
func RoundRobin() Balancer { return algorithm{"round_robin", newRoundRobin, true} }

type roundRobin struct {
	endpoints []*Endpoint
	turn      turn
}

func newRoundRobin(endpoints []*Endpoint) Picker {
	p := &roundRobin{endpoints: endpoints}
	p.turn.start(uint64(len(endpoints)))
	return p
}

func (p *roundRobin) Pick(r *Request) *Endpoint {
	i := int(p.turn.take() % uint64(len(p.endpoints)))
	return r.because(PickedInTurn, untriedFrom(p.endpoints, i, r))
}

// turn returns consecutive numbers. Concurrent picks share only its one atomic addition, and the
// padding keeps it off the cache lines that they read.
type turn struct {
	_    [64]byte
	last atomic.Uint64
	_    [56]byte
}

// start sets the first number to a random one below n.
func (t *turn) start(n uint64) { t.last.Store(rand.Uint64N(n)) }

func (t *turn) take() uint64 { return t.last.Add(1) }

package balance

import (
	"math/rand/v2"
	"sync/atomic"
)

// RoundRobin returns the balancer "round_robin": each endpoint in its turn, whatever the weights.
// First attempts visit every endpoint once in any run of as many picks, also under concurrency; a
// further attempt of a call takes a turn too, and passes over what it has tried. A picker begins
// at a random endpoint, so that clients that start together do not go around together.
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
	return untriedFrom(p.endpoints, i, r)
}

// turn hands out numbers one after the other. One atomic addition is all that concurrent picks
// share, and the padding keeps it off the lines that they read.
type turn struct {
	_    [64]byte
	last atomic.Uint64
	_    [56]byte
}

// start makes the first number a random one below n.
func (t *turn) start(n uint64) { t.last.Store(rand.Uint64N(n)) }

func (t *turn) take() uint64 { return t.last.Add(1) }

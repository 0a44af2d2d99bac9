package anser

import (
	"math/rand/v2"

	"github.com/anser-rpc/anser/internal/cluster"
)

// subset configures how many instances of a large service a client uses.
type subset struct {
	from int // number of instances from which a service is large; 0: never
	size int
}

func defaultSubset() subset { return subset{from: 100, size: 32} }

// Subset makes a client of a service with at least from instances use only size of them. The
// default is 32 of 100 or more; Subset(0, 0) always uses all. With the default, a thousand clients
// of a thousand instances make 32,000 connections instead of a million.
//
// Each process chooses its own subset by rendezvous hashing (D. Thaler, C. Ravishankar, 1998; for
// subsets: gRFC A68), so clients are spread over the instances at random, and an instance that
// comes or goes changes at most one member. A member that is down or ejected is replaced until it
// is back. The subset grows, up to all instances, while the client has four or more attempts in
// flight per member, and shrinks again after a minute with less than one per member: a client that
// makes most of the calls must not leave most of the instances idle.
//
// Subset applies to balancers that work with any part of the instances: random, round_robin,
// weighted, least_active, p2c, ping, and others with a method AnyPart() bool that returns true.
// Other balancers get the whole list: a key must map to the same instance in every client, and the
// nearest instance may be outside any subset. A client that is given [Handlers] uses all instances
// too, as each of them may want to call it.
func Subset(from, size int) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(from == 0 && size == 0 || from >= size && size >= 2, "anser.Subset(%d, %d): want a size of at least 2 and at most as many instances to begin from, or 0, 0 for all", from, size) {
			o.subset = subset{from, size}
		}
	})
}

// subsetOf returns the subset as the cluster has it. Nothing is left out if the balancer may not be
// given a part of the instances.
func (o *dialOptions) subsetOf(p *pool) cluster.SubsetOptions {
	if b, ok := o.balancer.(interface{ AnyPart() bool }); !ok || !b.AnyPart() || o.subset.from == 0 || o.handlers != nil {
		return cluster.SubsetOptions{}
	}
	return cluster.SubsetOptions{From: o.subset.from, Size: o.subset.size, Seed: p.subsetSeed()}
}

// subsetSeed returns the seed of the pool. Clients that share connections also share their subsets.
func (p *pool) subsetSeed() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.seed == 0 {
		p.seed = rand.Uint64()
	}
	return p.seed
}

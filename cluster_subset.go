package anser

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
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

const (
	growFrom    = 4 // mean attempts in flight per member that double the subset
	shrinkBelow = 1 // and that halve it
	shrinkAfter = time.Minute
	spareAfter  = time.Minute // without a call, connections to instances outside the subset are closed
)

// anyPart reports whether the balancer may be given a part of the instances.
func (o *dialOptions) anyPart() bool {
	b, ok := o.balancer.(interface{ AnyPart() bool })
	return ok && b.AnyPart() && o.subset.from > 0 && o.handlers == nil
}

// rankFor returns the rank of an instance for a process with the seed: a hash of both.
func rankFor(seed uint64, key string) uint64 {
	x := balance.Hash(key) ^ seed
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // the finalizer of splitmix64
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
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

// chooseLocked returns the endpoints to use: all usable ones, or for a large service the first ones
// by rank.
func (cl *cluster) chooseLocked(usable []*endpoint) []*endpoint {
	s := cl.client.o.subset
	was := cl.inSubset
	cl.inSubset = 0
	from := s.from
	if was > 0 { // hysteresis: one instance that comes and goes must not change everything
		from = from * 3 / 4
	}
	if !cl.partial || len(cl.endpoints) < from {
		cl.subsetSize = 0
		if was > 0 {
			// Including the endpoints that are out of use for now.
			cl.markSpareLocked(slices.Collect(maps.Values(cl.endpoints)))
		}
		return usable
	}
	cl.subsetSize = max(cl.subsetSize, s.size)
	if cl.subsetSize < len(usable) {
		usable = slices.Clone(usable)
		slices.SortFunc(usable, func(a, b *endpoint) int { return cmp.Compare(a.rank, b.rank) })
		usable = usable[:cl.subsetSize]
	}
	cl.inSubset = len(usable)
	cl.markSpareLocked(usable)
	if was == 0 {
		cl.look() // starts the regular checks of the load
	}
	return usable
}

// of returns the endpoints of a part that are used, sorted by key.
func (s subset) of(part []*endpoint) []*endpoint {
	if s.from == 0 || len(part) < s.from || len(part) <= s.size {
		return part
	}
	part = slices.Clone(part)
	slices.SortFunc(part, func(a, b *endpoint) int { return cmp.Compare(a.rank, b.rank) })
	part = part[:s.size]
	byKey(part)
	return part
}

// byKey sorts endpoints by the keys of their instances.
func byKey(list []*endpoint) {
	slices.SortFunc(list, func(a, b *endpoint) int { return strings.Compare(a.Instance().Key(), b.Instance().Key()) })
}

// markSpareLocked lets connections to endpoints that are not members close.
func (cl *cluster) markSpareLocked(members []*endpoint) {
	for _, e := range cl.endpoints {
		e.outside = true
	}
	for _, e := range members {
		e.outside = false
		e.host.spare.Store(false)
	}
	for _, e := range cl.endpoints {
		if e.outside {
			e.host.makeSpare()
		}
	}
}

// checkSubsetLocked grows or shrinks the subset with the load, and reports whether it did.
func (cl *cluster) checkSubsetLocked(now mono.Time) bool {
	if cl.inSubset == 0 {
		return false
	}
	active := int64(0)
	for _, e := range cl.endpoints {
		if !e.outside {
			active += e.Active()
		}
	}
	mean := float64(active) / float64(cl.inSubset)
	if mean >= shrinkBelow {
		cl.calmSince = now
	}
	switch {
	case now.Sub(cl.loadSeen) < lookCounted:
		return false // the check had another cause
	case mean >= growFrom && cl.busy && cl.subsetSize < len(cl.endpoints):
		cl.subsetSize = min(2*cl.subsetSize, len(cl.endpoints))
		cl.loadSeen, cl.busy = now, false
		return true
	case cl.subsetSize > cl.client.o.subset.size && now.Sub(cl.calmSince) > shrinkAfter:
		cl.subsetSize = max(cl.subsetSize/2, cl.client.o.subset.size)
		cl.loadSeen, cl.calmSince = now, now
		return true
	}
	// The load must be high twice in a row, a second apart: a burst is shorter.
	cl.loadSeen, cl.busy = now, mean >= growFrom
	return false
}

package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
)

const (
	growFrom    = 4 // mean attempts in flight per member that double the subset
	shrinkBelow = 1 // and that halve it
	shrinkAfter = time.Minute
)

// rankFor returns the rank of an instance for a process with the seed: a hash of both.
func rankFor(seed uint64, key string) uint64 {
	x := balance.Hash(key) ^ seed
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // the finalizer of splitmix64
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chooseLocked returns the endpoints to use: all usable ones, or for a large service the first ones
// by rank.
func (cl *Cluster[H, R]) chooseLocked(usable []*Endpoint[H, R]) []*Endpoint[H, R] {
	s := cl.o.Subset
	was := cl.inSubset
	cl.inSubset = 0
	from := s.From
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
	cl.subsetSize = max(cl.subsetSize, s.Size)
	if cl.subsetSize < len(usable) {
		usable = slices.Clone(usable)
		slices.SortFunc(usable, func(a, b *Endpoint[H, R]) int { return cmp.Compare(a.rank, b.rank) })
		usable = usable[:cl.subsetSize]
	}
	cl.inSubset = len(usable)
	cl.markSpareLocked(usable)
	if was == 0 {
		cl.look() // starts the regular checks of the load
	}
	return usable
}

// membersOf returns the endpoints of a part that are used, sorted by key.
func membersOf[H Host, R comparable](s SubsetOptions, part []*Endpoint[H, R]) []*Endpoint[H, R] {
	if s.From == 0 || len(part) < s.From || len(part) <= s.Size {
		return part
	}
	part = slices.Clone(part)
	slices.SortFunc(part, func(a, b *Endpoint[H, R]) int { return cmp.Compare(a.rank, b.rank) })
	part = part[:s.Size]
	byKey(part)
	return part
}

// byKey sorts endpoints by the keys of their instances.
func byKey[H Host, R comparable](list []*Endpoint[H, R]) {
	slices.SortFunc(list, func(a, b *Endpoint[H, R]) int { return strings.Compare(a.Instance().Key(), b.Instance().Key()) })
}

// markSpareLocked lets connections to endpoints that are not members close.
func (cl *Cluster[H, R]) markSpareLocked(members []*Endpoint[H, R]) {
	for _, e := range cl.endpoints {
		e.outside = true
	}
	for _, e := range members {
		e.outside = false
		e.Host.SetSpare(false)
	}
	for _, e := range cl.endpoints {
		if e.outside {
			e.Host.SetSpare(true)
		}
	}
}

// checkSubsetLocked grows or shrinks the subset with the load, and reports whether it did.
func (cl *Cluster[H, R]) checkSubsetLocked(now mono.Time) bool {
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
	case cl.subsetSize > cl.o.Subset.Size && now.Sub(cl.calmSince) > shrinkAfter:
		cl.subsetSize = max(cl.subsetSize/2, cl.o.Subset.Size)
		cl.loadSeen, cl.calmSince = now, now
		return true
	}
	// The load must be high twice in a row, a second apart: a burst is shorter.
	cl.loadSeen, cl.busy = now, mean >= growFrom
	return false
}

package striped

import (
	"math"
	"sync"
	"sync/atomic"
)

// Limit bounds a number of places. It is exact: no more than all places are taken, and none is
// refused while another one is free. All methods but Init are safe for concurrent use. A Limit
// must not be copied.
//
// Places are lent to parts, of which each has cache lines of its own, some at a time. As long as a
// part has places, taking one and giving it back writes nothing that other parts use.
type Limit struct {
	parts []part
	batch uint32       // how many places are lent at once
	state atomic.Int32 // unknown, looking, full

	mu   sync.Mutex // guards the field below
	free uint32     // places that are lent to no part
}

// part is a share of the places.
type part struct {
	word atomic.Uint64 // lent places in the upper half, taken ones in the lower half
	_    [120]byte
}

const maxBatch = 64

// What is known of the free places. Giving one back makes it unknown, so that a full Limit refuses
// without looking at all parts again.
const (
	unknown int32 = iota
	looking
	full // no place is free
)

func taken(word uint64) uint32 { return uint32(word) }
func lent(word uint64) uint32  { return uint32(word >> 32) }

// Init sets the number of places, and the number of parts, a power of 2.
func (l *Limit) Init(places, parts int) {
	l.free = uint32(min(max(places, 0), math.MaxInt32))
	l.parts = make([]part, parts)
	l.batch = max(min(l.free/uint32(4*parts), maxBatch), 1)
	if parts == 1 { // which gets all places once and for all
		l.batch = max(l.free, 1)
	}
}

func (l *Limit) part(i uint32) *part { return &l.parts[int(i)&(len(l.parts)-1)] }

// Take takes a place and reports whether there was one. i chooses the part; Give must have the
// same.
func (l *Limit) Take(i uint32) bool {
	p := l.part(i)
	for {
		word := p.word.Load()
		if taken(word) >= lent(word) {
			return l.state.Load() != full && l.takeMore(p)
		}
		if p.word.CompareAndSwap(word, word+1) {
			return true
		}
	}
}

// Force takes a place that there may not be.
func (l *Limit) Force(i uint32) {
	if !l.Take(i) {
		l.part(i).word.Add(1)
	}
}

// Give gives a place back.
func (l *Limit) Give(i uint32) {
	p := l.part(i)
	word := p.word.Add(^uint64(0))
	if l.state.Load() != unknown {
		l.state.Store(unknown)
	}
	if uint64(lent(word)) > uint64(taken(word))+2*uint64(l.batch) {
		l.mu.Lock()
		l.reclaimLocked(p, l.batch)
		l.mu.Unlock()
	}
}

// Taken returns how many places are taken.
func (l *Limit) Taken() (n int64) {
	for i := range l.parts {
		n += int64(taken(l.parts[i].word.Load()))
	}
	return n
}

// Estimate returns about how many places are taken, from part i alone: it reads what Take writes.
func (l *Limit) Estimate(i uint32) int64 {
	return int64(taken(l.part(i).word.Load())) * int64(len(l.parts))
}

// takeMore takes a place of a part that has none left.
func (l *Limit) takeMore(p *part) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Before the look: a place that is given back during it is found, or resets the state.
	l.state.Store(looking)
	for {
		if word := p.word.Load(); taken(word) < lent(word) {
			if p.word.CompareAndSwap(word, word+1) {
				return true
			}
			continue
		}
		for i := 0; i < len(l.parts) && l.free == 0; i++ {
			if q := &l.parts[i]; q != p {
				l.reclaimLocked(q, 0)
			}
		}
		n := min(l.batch, l.free)
		if n == 0 {
			if l.state.CompareAndSwap(looking, full) {
				return false
			}
			l.state.Store(looking) // a place was given back behind the look
			continue
		}
		l.free -= n
		p.word.Add(uint64(n) << 32)
	}
}

// reclaimLocked takes from a part what is lent to it, but for the places that are taken and for
// some spare ones.
func (l *Limit) reclaimLocked(p *part, spare uint32) {
	for {
		word := p.word.Load()
		keep := uint64(taken(word)) + uint64(spare)
		if uint64(lent(word)) <= keep {
			return
		}
		if p.word.CompareAndSwap(word, keep<<32|uint64(taken(word))) {
			l.free += lent(word) - uint32(keep)
			return
		}
	}
}

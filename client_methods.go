package anser

import (
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/internal/cluster"
)

// maxKnownMethods is the number of names for which a client keeps state; maxNumberedMethods is that
// of names that a process numbers. The names of a gateway come from its own callers and need not
// exist, so both must be bounded. A call of a further method works too: it costs an allocation and
// a map lookup, and the client learns nothing about its method (breakers, hedging delays, whether
// it is idempotent).
const maxKnownMethods = cluster.MaxMethods

// knownMethods finds the methods of a client by name. Reading takes no lock, except for recent
// names: they are in a second map, and move to the first one when there are as many of them as
// names in the first, or when that many lookups have found one. So a name costs a constant number
// of copies.
type knownMethods struct {
	read atomic.Pointer[map[string]*clientMethod] // replaced, never changed; nil at first

	mu     sync.Mutex // guards what follows
	recent map[string]*clientMethod
	found  int // looks that found a name in recent
}

// get returns the method with the name, or nil.
func (t *knownMethods) get(name string) *clientMethod {
	read := t.read.Load()
	if read != nil {
		if m := (*read)[name]; m != nil {
			return m
		}
		if len(*read) >= maxKnownMethods {
			return nil
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.getLocked(name)
}

func (t *knownMethods) getLocked(name string) *clientMethod {
	if m := t.recent[name]; m != nil {
		if t.found++; t.found >= t.lenLocked() {
			t.promoteLocked()
		}
		return m
	}
	if read := t.read.Load(); read != nil { // promoted in the meantime
		return (*read)[name]
	}
	return nil
}

// add returns the method with the name, and creates it the first time. It is not kept if there are
// already maxKnownMethods.
func (t *knownMethods) add(name string, p *pool, measures []measure) *clientMethod {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.getLocked(name); m != nil {
		return m
	}
	n := t.lenLocked()
	if n >= maxKnownMethods {
		return &clientMethod{methodName: methodName{name, maxNumberedMethods}, health: methodHealth{Name: name, Index: maxKnownMethods}, measures: measures}
	}
	m := &clientMethod{methodName: methodName{name, p.methodNumber(name)}, health: methodHealth{Name: name, Index: n}, measures: measures}
	if t.recent == nil {
		t.recent = make(map[string]*clientMethod)
	}
	t.recent[name] = m
	if 2*len(t.recent) > n || n+1 == maxKnownMethods {
		t.promoteLocked()
	}
	return m
}

func (t *knownMethods) lenLocked() int {
	n := len(t.recent)
	if read := t.read.Load(); read != nil {
		n += len(*read)
	}
	return n
}

// promoteLocked merges the two maps.
func (t *knownMethods) promoteLocked() {
	next := make(map[string]*clientMethod, t.lenLocked())
	if read := t.read.Load(); read != nil {
		for name, m := range *read {
			next[name] = m
		}
	}
	for name, m := range t.recent {
		next[name] = m
	}
	t.read.Store(&next)
	t.recent, t.found = nil, 0
}

// all returns the methods that are kept.
func (t *knownMethods) all() map[string]*clientMethod {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.recent) > 0 {
		t.promoteLocked()
	}
	if read := t.read.Load(); read != nil {
		return *read
	}
	return nil
}

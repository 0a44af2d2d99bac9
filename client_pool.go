package anser

import (
	"sync"

	"github.com/anser-rpc/anser/internal/upkeep"
)

// pool holds the connections that the clients of a process share, and the numbers of their methods.
// The zero value is ready for use.
type pool struct {
	calls   sync.Pool // of *call
	started sync.Pool // of *call, those of futures, most of which have no channel
	waiters sync.Pool // of chan struct{}

	standbys standbys
	upkeep   upkeep.Schedule // of the hosts and their connections

	mu      sync.Mutex // guards the fields below
	hosts   map[hostOptions]*host
	numbers map[string]uint32
	seed    uint64 // of subsets; 0: not drawn yet
}

// shared serves all clients without a dialer of their own; see docs/decisions/0003.
var shared pool

// acquire returns the host with these options; release is its counterpart.
func (p *pool) acquire(o hostOptions, conns int, dial dialFunc) *host {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hosts[o]
	if h == nil {
		if p.hosts == nil {
			p.hosts = make(map[hostOptions]*host)
		}
		h = newHost(p, o, dial)
		p.hosts[o] = h
		p.upkeep.Add(&h.upkeep, upkeep.Never, h.tend)
	}
	h.refs++
	h.wantAtLeast(conns)
	return h
}

// release returns a host. The last release closes it, and waits until everything is closed.
func (p *pool) release(h *host) {
	p.mu.Lock()
	h.refs--
	last := h.refs == 0
	if last {
		delete(p.hosts, h.hostOptions)
	}
	p.mu.Unlock()
	if !last {
		return
	}
	h.close()
	p.upkeep.Remove(&h.upkeep)
	p.upkeep.Wait()
}

// methodNumber returns the pool's number of a method; connections map it to their own. Methods
// beyond maxNumberedMethods share one number, and connections identify them by name.
func (p *pool) methodNumber(name string) uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, ok := p.numbers[name]; ok {
		return n
	}
	if len(p.numbers) == maxNumberedMethods {
		return maxNumberedMethods
	}
	if p.numbers == nil {
		p.numbers = make(map[string]uint32)
	}
	n := uint32(len(p.numbers))
	p.numbers[name] = n
	return n
}

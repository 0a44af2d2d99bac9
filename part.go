package anser

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/balance"
)

// parts are the views of subsets, made when a call first wants them. They live as long as the view that they
// are parts of, which is replaced when anything about the instances changes.
type parts struct {
	balancer balance.Balancer
	log      *slog.Logger
	subset   subset                          // of a large part
	made     atomic.Pointer[map[*Part]*view] // replaced, never changed

	mu     sync.Mutex // held while a part is made
	before map[*Part]*view
}

// maxParts bounds the subsets that a view has parts for; a router that makes ever new ones would fill the memory.
const maxParts = 4096

func newParts(cl *cluster, before *view) *parts {
	p := &parts{balancer: cl.client.o.balancer, log: cl.log}
	if cl.partial {
		p.subset = subset{cl.client.o.subset.from, max(cl.client.o.subset.size, cl.subsetSize)}
	}
	if before != nil && before.parts != nil {
		if made := before.parts.made.Load(); made != nil {
			p.before = *made
		}
	}
	return p
}

// of returns the part of the view that the subset is.
func (v *view) of(s *Part) *view {
	if v.parts == nil {
		return v
	}
	if made := v.parts.made.Load(); made != nil {
		if part := (*made)[s]; part != nil {
			return part
		}
	}
	return v.part(s)
}

// part makes the part of the view that the subset is, unless somebody else has just done so.
func (v *view) part(s *Part) *view {
	p := v.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	made := p.made.Load()
	next := make(map[*Part]*view)
	if made != nil && len(*made) < maxParts {
		if part := (*made)[s]; part != nil {
			return part
		}
		for k, part := range *made {
			next[k] = part
		}
	}
	up, all := v.narrow(s, nil)
	next[s] = v.build(up, all, p.before[s])
	p.made.Store(&next)
	return next[s]
}

// build makes the view of endpoints. It keeps the picker of the one before if nothing has changed for it.
func (v *view) build(up, all []*endpoint, before *view) *view {
	if len(up) == 0 {
		up = all
	}
	up = v.parts.subset.of(up)
	part := &view{usable: len(up), total: len(all), byPick: make(map[*balance.Endpoint]*endpoint, len(up)), trials: v.trials, among: slices.Clip(all)}
	if part.among == nil {
		part.among = []*endpoint{} // nil would be all
	}
	if len(up) == 1 {
		part.only = up[0]
	}
	list := make([]*balance.Endpoint, 0, len(up))
	for _, e := range up {
		part.byPick[e.Endpoint] = e
		part.built = append(part.built, built{e.Endpoint, e.Instance(), e.Warmth()})
		list = append(list, e.Endpoint)
	}
	switch {
	case slices.Equal(part.built, v.built):
		part.picker = v.picker
	case before != nil && slices.Equal(part.built, before.built):
		part.picker = before.picker
	default:
		part.picker = v.parts.balancer.Build(list)
	}
	return part
}

// narrow applies the filters of the subset. It returns what stays of the endpoints that can be picked, and of
// all. note, which may be nil, is told what became of each filter.
func (v *view) narrow(s *Part, note func(f *Filter, left int, passedOver bool)) (up, all []*endpoint) {
	up, all = v.reach, v.all
	for i := range s.Filters {
		f := &s.Filters[i]
		kept := v.parts.keep(f, up)
		passedOver := len(kept) == 0 && !f.Strict
		if !passedOver {
			up, all = kept, v.parts.keep(f, all)
		}
		if note != nil {
			note(f, len(up), passedOver)
		}
	}
	return up, all
}

// keep returns the endpoints that stay. The order does not change.
func (p *parts) keep(f *Filter, list []*endpoint) (kept []*endpoint) {
	defer func() {
		if r := recover(); r != nil { // then nobody is left: calls fail or go past the filter, as it says
			p.log.Error("a filter of the router panicked", "filter", f.Name, "panic", fmt.Sprint(r))
			kept = nil
		}
	}()
	for _, e := range list {
		if f.Keep(e.Instance()) {
			kept = append(kept, e)
		}
	}
	return kept
}

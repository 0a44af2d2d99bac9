package cluster

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/balance"
)

// routeViews holds the views of routes, each built when a call first needs it. It lives as long as
// the view that it belongs to, which is replaced when anything about the instances changes.
type routeViews[H Host, R comparable] struct {
	balancer balance.Balancer
	log      *slog.Logger
	filters  func(R) []Filter
	subset   SubsetOptions                     // applied to large routes
	made     atomic.Pointer[map[R]*View[H, R]] // replaced, never modified

	mu     sync.Mutex // held while a view is built
	before map[R]*View[H, R]
}

// maxRouteViews bounds the routes that a view caches: a router that keeps creating new ones would
// otherwise fill the memory.
const maxRouteViews = 4096

func newRouteViews[H Host, R comparable](cl *Cluster[H, R], before *View[H, R]) *routeViews[H, R] {
	p := &routeViews[H, R]{balancer: cl.o.Balancer, log: cl.o.Log, filters: cl.o.Filters}
	if cl.partial {
		p.subset = cl.o.Subset
		p.subset.Size = max(p.subset.Size, cl.subsetSize)
	}
	if before != nil && before.routes != nil {
		if made := before.routes.made.Load(); made != nil {
			p.before = *made
		}
	}
	return p
}

// ForRoute returns the part of the view that the route selects.
func (v *View[H, R]) ForRoute(s R) *View[H, R] {
	if v.routes == nil {
		return v
	}
	if made := v.routes.made.Load(); made != nil {
		if part := (*made)[s]; part != nil {
			return part
		}
	}
	return v.addRoute(s)
}

// addRoute builds the part of the view that the route selects, unless another goroutine has just
// built it.
func (v *View[H, R]) addRoute(s R) *View[H, R] {
	p := v.routes
	p.mu.Lock()
	defer p.mu.Unlock()
	made := p.made.Load()
	next := make(map[R]*View[H, R])
	if made != nil && len(*made) < maxRouteViews {
		if part := (*made)[s]; part != nil {
			return part
		}
		for k, part := range *made {
			next[k] = part
		}
	}
	up, all := v.Filter(p.filters(s), nil)
	next[s] = v.build(up, all, p.before[s])
	p.made.Store(&next)
	return next[s]
}

// build returns the view of the endpoints in up, or of all if up is empty. It reuses the picker of
// v or of before if that was built from equal inputs.
func (v *View[H, R]) build(up, all []*Endpoint[H, R], before *View[H, R]) *View[H, R] {
	if len(up) == 0 {
		up = all
	}
	up = membersOf(v.routes.subset, up)
	part := &View[H, R]{Usable: len(up), Total: len(all), byPick: make(map[*balance.Endpoint]*Endpoint[H, R], len(up)), trials: v.trials, among: slices.Clip(all)}
	if part.among == nil {
		part.among = []*Endpoint[H, R]{} // nil would mean all
	}
	if len(up) == 1 {
		part.only = up[0]
	}
	list := make([]*balance.Endpoint, 0, len(up))
	for _, e := range up {
		part.byPick[e.Endpoint] = e
		part.inputs = append(part.inputs, pickerInput{e.Endpoint, e.Instance(), e.Warmth()})
		list = append(list, e.Endpoint)
	}
	switch {
	case slices.Equal(part.inputs, v.inputs):
		part.picker = v.picker
	case before != nil && slices.Equal(part.inputs, before.inputs):
		part.picker = before.picker
	default:
		part.picker = v.routes.balancer.Build(list)
	}
	return part
}

// Filter applies the filters of a route. It returns the remaining endpoints that can be picked,
// and all remaining ones. If note is not nil, it is called with the result of each filter.
func (v *View[H, R]) Filter(filters []Filter, note func(f *Filter, left int, passedOver bool)) (up, all []*Endpoint[H, R]) {
	up, all = v.reach, v.all
	for i := range filters {
		f := &filters[i]
		kept := v.routes.keep(f, up)
		passedOver := len(kept) == 0 && !f.Strict
		if !passedOver {
			up, all = kept, v.routes.keep(f, all)
		}
		if note != nil {
			note(f, len(up), passedOver)
		}
	}
	return up, all
}

// keep returns the endpoints that the filter keeps, in the same order.
func (p *routeViews[H, R]) keep(f *Filter, list []*Endpoint[H, R]) (kept []*Endpoint[H, R]) {
	defer func() {
		if r := recover(); r != nil { // none remains: calls fail or skip the filter, as it is configured
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

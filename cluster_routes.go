package anser

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
type routeViews struct {
	balancer balance.Balancer
	log      *slog.Logger
	subset   subset                           // applied to large routes
	made     atomic.Pointer[map[*Route]*view] // replaced, never modified

	mu     sync.Mutex // held while a view is built
	before map[*Route]*view
}

// maxRouteViews bounds the routes that a view caches: a router that keeps creating new ones would
// otherwise fill the memory.
const maxRouteViews = 4096

func newRouteViews(cl *cluster, before *view) *routeViews {
	p := &routeViews{balancer: cl.client.o.balancer, log: cl.log}
	if cl.partial {
		p.subset = subset{cl.client.o.subset.from, max(cl.client.o.subset.size, cl.subsetSize)}
	}
	if before != nil && before.routes != nil {
		if made := before.routes.made.Load(); made != nil {
			p.before = *made
		}
	}
	return p
}

// forRoute returns the part of the view that the route selects.
func (v *view) forRoute(s *Route) *view {
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
func (v *view) addRoute(s *Route) *view {
	p := v.routes
	p.mu.Lock()
	defer p.mu.Unlock()
	made := p.made.Load()
	next := make(map[*Route]*view)
	if made != nil && len(*made) < maxRouteViews {
		if part := (*made)[s]; part != nil {
			return part
		}
		for k, part := range *made {
			next[k] = part
		}
	}
	up, all := v.filter(s, nil)
	next[s] = v.build(up, all, p.before[s])
	p.made.Store(&next)
	return next[s]
}

// build returns the view of the endpoints in up, or of all if up is empty. It reuses the picker of
// v or of before if that was built from equal inputs.
func (v *view) build(up, all []*endpoint, before *view) *view {
	if len(up) == 0 {
		up = all
	}
	up = v.routes.subset.of(up)
	part := &view{usable: len(up), total: len(all), byPick: make(map[*balance.Endpoint]*endpoint, len(up)), trials: v.trials, among: slices.Clip(all)}
	if part.among == nil {
		part.among = []*endpoint{} // nil would mean all
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

// filter applies the filters of the route. It returns the remaining endpoints that can be picked,
// and all remaining ones. If note is not nil, it is called with the result of each filter.
func (v *view) filter(s *Route, note func(f *Filter, left int, passedOver bool)) (up, all []*endpoint) {
	up, all = v.reach, v.all
	for i := range s.Filters {
		f := &s.Filters[i]
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
func (p *routeViews) keep(f *Filter, list []*endpoint) (kept []*endpoint) {
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

package cluster

import (
	"slices"
	"strings"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// View is an immutable snapshot that attempts pick an endpoint from; it is replaced as a whole.
type View[H Host, R comparable] struct {
	trials []*probe[H, R] // probes of ejected instances; usually nil
	picker balance.Picker
	only   *Endpoint[H, R] // the single endpoint that can be picked, or nil
	Usable int             // number of endpoints that can be picked
	Total  int             // number of all endpoints
	byPick map[*balance.Endpoint]*Endpoint[H, R]
	inputs []pickerInput
	routes *routeViews[H, R] // nil without a router
	reach  []*Endpoint[H, R] // usable endpoints that routes select from, sorted
	all    []*Endpoint[H, R] // all endpoints, usable or not, sorted
	among  []*Endpoint[H, R] // endpoints of a route that may be tried; nil: any
}

// pickerInput is what Build saw of an endpoint; equal inputs let the picker be reused.
type pickerInput struct {
	endpoint *balance.Endpoint
	instance *registry.Instance
	warmth   int
}

// viewOf returns a view of the endpoints in up. It reuses the picker of old if that was built from
// equal inputs. reach holds all usable endpoints; up may be a subset of it.
func (cl *Cluster[H, R]) viewOf(up, reach []*Endpoint[H, R], old *View[H, R]) *View[H, R] {
	list := make([]*balance.Endpoint, 0, len(up))
	for _, e := range up {
		list = append(list, e.Endpoint)
	}
	sortEndpoints(list)
	inputs := make([]pickerInput, 0, len(list))
	for _, e := range list {
		inputs = append(inputs, pickerInput{e, e.Instance(), e.Warmth()})
	}
	// Most changes are new connections: a client with a thousand instances sees a thousand of them
	// when it starts, and some balancers take milliseconds to build a picker for that many.
	same := old != nil && slices.Equal(old.inputs, inputs)
	if same && old.Total == len(cl.endpoints) && old.trials == nil && cl.out == 0 && cl.o.Filters == nil {
		return old // it would have nothing else
	}
	v := &View[H, R]{Usable: len(up), Total: len(cl.endpoints), inputs: inputs, byPick: make(map[*balance.Endpoint]*Endpoint[H, R], len(up))}
	for _, e := range up {
		v.byPick[e.Endpoint] = e
	}
	if same {
		v.picker = old.picker
	} else {
		// Built for a single endpoint too: a stateful balancer may want to know which one it was.
		v.picker = cl.o.Balancer.Build(list)
	}
	if len(up) == 1 {
		v.only = up[0]
	}
	if cl.o.Filters != nil {
		v.reach = slices.Clone(reach)
		for _, e := range cl.endpoints {
			v.all = append(v.all, e)
		}
		byKey(v.reach)
		byKey(v.all)
		v.routes = newRouteViews(cl, old)
	}
	return v
}

// Pick chooses an endpoint for an attempt, and sets the reason in r. It returns nil when there is
// none.
func (v *View[H, R]) Pick(r *balance.Request) *Endpoint[H, R] {
	for _, t := range v.trials {
		if e := t.take(r, v.among); e != nil {
			r.Reason = balance.PickedForTrial
			return e
		}
	}
	if v.only != nil {
		r.Reason = balance.PickedOnly
		return v.only
	}
	r.Reason = balance.Unexplained
	e := v.picker.Pick(r)
	if e == nil {
		return nil
	}
	return v.byPick[e]
}

// PickApart chooses an endpoint as Pick does, but none that a call is wanted for as a probe.
func (v *View[H, R]) PickApart(r *balance.Request) *Endpoint[H, R] {
	untried := *v
	untried.trials = nil
	return untried.Pick(r)
}

// PickSeveral picks up to n endpoints, each once.
func (v *View[H, R]) PickSeveral(r *balance.Request, n int) []*Endpoint[H, R] {
	if v.only != nil {
		return []*Endpoint[H, R]{v.only}
	}
	var list []*Endpoint[H, R]
	var tried []*balance.Endpoint
	for range min(n, v.Usable) {
		r.Tried = tried
		e := v.Pick(r)
		if e == nil || r.HasTried(e.Endpoint) {
			break
		}
		list, tried = append(list, e), append(tried, e.Endpoint)
	}
	r.Tried = nil
	return list
}

// Has reports whether the endpoint can be picked, other than as a probe.
func (v *View[H, R]) Has(e *Endpoint[H, R]) bool { return v.byPick[e.Endpoint] != nil }

// HasOther reports whether an endpoint that is not in tried can be picked.
func (v *View[H, R]) HasOther(tried []*balance.Endpoint) bool {
	if v.only != nil {
		return !slices.Contains(tried, v.only.Endpoint)
	}
	for e := range v.byPick {
		if !slices.Contains(tried, e) {
			return true
		}
	}
	return false
}

// Any reports whether f returns true for an endpoint that can be picked.
func (v *View[H, R]) Any(f func(*Endpoint[H, R]) bool) bool {
	for _, e := range v.byPick {
		if f(e) {
			return true
		}
	}
	return false
}

func sortEndpoints(list []*balance.Endpoint) {
	slices.SortFunc(list, func(a, b *balance.Endpoint) int {
		return strings.Compare(a.Instance().Key(), b.Instance().Key())
	})
}

// ForCall returns the view for a call of the method: v, or a view without the instances whose
// breakers are open; with a route, one that is not the zero value, the part of that view that the
// route selects. v may be nil.
func (v *View[H, R]) ForCall(m *Method[H, R], route R) *View[H, R] {
	if v == nil {
		return nil
	}
	if around := m.view.Load(); around != nil {
		v = around
	}
	var none R
	if route != none {
		v = v.ForRoute(route)
	}
	return v
}

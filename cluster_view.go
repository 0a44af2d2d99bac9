package anser

import (
	"slices"
	"strings"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// view is an immutable snapshot that attempts pick an endpoint from; it is replaced as a whole.
type view struct {
	trials []*probe // probes of ejected instances; usually nil
	picker balance.Picker
	only   *endpoint // the single endpoint that can be picked, or nil
	usable int       // number of endpoints that can be picked
	total  int       // number of all endpoints
	byPick map[*balance.Endpoint]*endpoint
	inputs []pickerInput
	routes *routeViews // nil without a router
	reach  []*endpoint // usable endpoints that routes select from, sorted
	all    []*endpoint // all endpoints, usable or not, sorted
	among  []*endpoint // endpoints of a route that may be tried; nil: any
}

// pickerInput is what Build saw of an endpoint; equal inputs let the picker be reused.
type pickerInput struct {
	endpoint *balance.Endpoint
	instance *registry.Instance
	warmth   int
}

// viewOf returns a view of the endpoints in up. It reuses the picker of old if that was built from
// equal inputs. reach holds all usable endpoints; up may be a subset of it.
func (cl *cluster) viewOf(up, reach []*endpoint, old *view) *view {
	v := &view{usable: len(up), total: len(cl.endpoints), byPick: make(map[*balance.Endpoint]*endpoint, len(up))}
	list := make([]*balance.Endpoint, 0, len(up))
	for _, e := range up {
		v.byPick[e.Endpoint] = e
		list = append(list, e.Endpoint)
	}
	sortEndpoints(list)
	for _, e := range list {
		v.inputs = append(v.inputs, pickerInput{e, e.Instance(), e.Warmth()})
	}
	// Most changes are new connections: a client with a thousand instances sees a thousand of them
	// when it starts, and some balancers take milliseconds to build a picker for that many.
	if old != nil && slices.Equal(old.inputs, v.inputs) {
		v.picker = old.picker
	} else {
		// Built for a single endpoint too: a stateful balancer may want to know which one it was.
		v.picker = cl.client.o.balancer.Build(list)
	}
	if len(up) == 1 {
		v.only = up[0]
	}
	if cl.client.router != nil {
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

// pick chooses an endpoint for an attempt. It returns nil when there is none.
func (v *view) pick(r *balance.Request) *endpoint {
	for _, t := range v.trials {
		if e := t.take(r, v.among); e != nil {
			return e
		}
	}
	if v.only != nil {
		return v.only
	}
	e := v.picker.Pick(r)
	if e == nil {
		return nil
	}
	return v.byPick[e]
}

func sortEndpoints(list []*balance.Endpoint) {
	slices.SortFunc(list, func(a, b *balance.Endpoint) int {
		return strings.Compare(a.Instance().Key(), b.Instance().Key())
	})
}

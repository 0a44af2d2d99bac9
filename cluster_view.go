package anser

import (
	"slices"
	"strings"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// view is what picking needs; it is replaced as a whole.
type view struct {
	trials []*probe // of instances that are out; mostly nil
	picker balance.Picker
	only   *endpoint // the single endpoint that can be picked, or nil
	usable int       // how many can be picked
	total  int       // how many there are
	byPick map[*balance.Endpoint]*endpoint
	inputs []pickerInput
	routes *routeViews // nil without a router
	reach  []*endpoint // that parts are made of, sorted
	all    []*endpoint // sorted, also those that cannot be picked
	among  []*endpoint // of a part: those that may be tried; nil: any
}

// pickerInput is an endpoint as the picker was built with it.
type pickerInput struct {
	endpoint *balance.Endpoint
	instance *registry.Instance
	warmth   int
}

// viewOf returns a view of the endpoints, with the picker of old if that is of the same ones. reach are all that
// can be used, of which up may be a subset.
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
	// Most changes are connections that were made, of which a client with a thousand instances sees a
	// thousand when it starts; some balancers take milliseconds to build for so many.
	if old != nil && slices.Equal(old.inputs, v.inputs) {
		v.picker = old.picker
	} else {
		v.picker = cl.client.o.balancer.Build(list) // of one too: it may want to know which one that was
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

// pick chooses an endpoint for an attempt, or returns nil when there is none at all.
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

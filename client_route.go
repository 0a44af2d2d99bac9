package anser

import (
	"github.com/anser-rpc/anser/internal/cluster"
	"github.com/anser-rpc/anser/registry"
)

// Route is a part of a service's instances. It must not be changed after a Router has returned it.
type Route struct {
	Name    string   // name for people
	Filters []Filter // applied in order
}

// Filter excludes instances that a call must not use.
type Filter struct {
	Name string // name for people
	// Keep reports whether an instance remains. It must not block, and must always return the same
	// for the same instance.
	Keep func(in *registry.Instance) bool
	// Strict is for the case that none of the reachable instances would remain. If it is set, calls
	// fail unless an unreachable instance remains, which is then tried; if not, the filter is
	// skipped.
	Strict bool
}

// inCluster returns the filters as the cluster has them.
func (r *Route) inCluster() []cluster.Filter {
	filters := make([]cluster.Filter, len(r.Filters))
	for i, f := range r.Filters {
		filters[i] = cluster.Filter(f)
	}
	return filters
}

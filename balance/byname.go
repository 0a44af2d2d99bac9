package balance

import (
	"fmt"
	"strings"
)

// byName returns the balancers of this package in the order of its documentation.
func byName(here Here) []Balancer {
	return []Balancer{
		Random(), RoundRobin(), Weighted(), LeastActive(), P2C(), Ping(), ConsistentHash(), Maglev(), Sticky(),
		LocalFirst(here), Closest(here),
	}
}

// Names returns the names that ByName accepts.
func Names() []string {
	var names []string
	for _, b := range byName(Here{Hosts: []string{}}) {
		names = append(names, b.Name())
	}
	return names
}

// ByName returns the balancer of that name, for configuration files. Here is used by "closest",
// which needs the client's position, and by "local_first"; the others ignore it. The error for an
// unknown name lists the known ones.
func ByName(name string, here Here) (Balancer, error) {
	for _, b := range byName(here) {
		if b.Name() != name {
			continue
		}
		if v, ok := b.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				return nil, fmt.Errorf("balancer %q: %w", name, err)
			}
		}
		return b, nil
	}
	return nil, fmt.Errorf("unknown balancer %q: want one of %s", name, strings.Join(Names(), ", "))
}

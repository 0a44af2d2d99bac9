package gateway

import (
	"slices"
	"strings"
)

// Stats are the counters of a gateway, which only grow, and the state of its services. Failures of
// calls over Anser's own protocol, whose replies go on without being looked at, are in the
// statistics of [Gateway.Server].
type Stats struct {
	Calls  int64 // calls and streams that were forwarded
	Failed int64 // of these, those with an error, over other protocols than Anser's
	// Unreachable counts, of the failed ones, calls that no instance could take. Calls over Anser's
	// own protocol are forwarded without a look at their replies, and are not in it.
	Unreachable int64
	Refused     int64 // calls that were not forwarded
	Undescribed int64 // changes after which a service, or a method, could not be served
	Proxied     int64 // requests that were forwarded to HTTP servers
	ProxyFailed int64 // of these, requests without an answer
	Reloads     int64 // configurations that were put in force after the first
	// ReloadsRefused counts the configurations that were not put in force; the one before stayed.
	ReloadsRefused int64
	Services       []ServiceStatus
}

// ServiceStatus is what a gateway knows of a service.
type ServiceStatus struct {
	Name    string
	Methods []string // served methods, sorted
	Bare    []string // not served, since they have no contract
	Problem string   // why the service could not be asked what it serves, or ""
	Calls   int64    // calls and streams that are with the service now
}

// Stats returns the counters.
func (g *Gateway) Stats() Stats {
	s := Stats{
		Calls: g.counts.calls.Load(), Failed: g.counts.failed.Load(), Unreachable: g.counts.unreachable.Load(),
		Refused: g.counts.refused.Load(), Undescribed: g.counts.undescribed.Load(),
		Proxied: g.counts.proxied.Load(), ProxyFailed: g.counts.proxyFailed.Load(),
		Reloads: g.counts.reloads.Load(), ReloadsRefused: g.counts.reloadsRefused.Load(),
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, u := range g.upstreams {
		u.mu.Lock()
		status := u.status
		u.mu.Unlock()
		status.Calls = u.calls.Load()
		s.Services = append(s.Services, status)
	}
	slices.SortFunc(s.Services, func(a, b ServiceStatus) int { return strings.Compare(a.Name, b.Name) })
	return s
}

package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
)

// Status is what a cluster knows. Nothing in it is shared with the cluster but Listed, which must
// not be changed.
type Status[H Host, R comparable] struct {
	Listed    []registry.Instance // the registry's list, before the router's changes
	Updated   time.Time           // time of the registry's last list; zero: none
	Stale     bool                // the list is a saved one
	Saved     time.Time           // if so, when it was saved
	Trouble   error               // why the registry is unreachable, or nil
	Since     time.Time           // time when that began
	Partial   bool                // a subset may be used
	Subset    int                 // endpoints in the subset; 0: no subset
	Changes   [Changes]int64      // number of events of each kind
	Instances []InstanceStatus[H, R]
}

// InstanceStatus is what a cluster knows about an endpoint.
type InstanceStatus[H Host, R comparable] struct {
	Endpoint  *Endpoint[H, R]
	Instance  registry.Instance
	Connected bool // a connection takes calls
	Missing   bool // the host is missing now: see Reach
	Down      bool // it was missing when the view was last built
	Held      bool // it is no longer listed, but too many were removed at once
	Outside   bool // it is not in the subset

	Standing  Standing
	Why       string    // reason of the ejection
	Ejections int       // in a row
	Silent    bool      // it was ejected as it does not answer pings, and is back when it does
	Since     mono.Time // of the latest ejection, or its end
	Until     mono.Time // time of the first trial
	Breakers  []BreakerStatus
}

// Status returns what the cluster knows, with the instances sorted by key.
func (cl *Cluster[H, R]) Status() Status[H, R] {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	s := Status[H, R]{
		Listed: cl.listed, Updated: cl.updated, Stale: cl.stale, Saved: cl.saved, Trouble: cl.trouble, Since: cl.since,
		Partial: cl.partial, Subset: cl.inSubset, Changes: cl.changes,
	}
	for _, e := range cl.endpoints {
		j := &e.conduct.ejection
		s.Instances = append(s.Instances, InstanceStatus[H, R]{
			Endpoint: e, Instance: e.Instance().Clone(), Connected: e.Host.Connected(), Missing: e.Host.Reach().Missing(),
			Down: e.down, Held: e.gone, Outside: e.outside,
			Standing: e.conduct.standing.Load(), Why: j.why, Ejections: j.times, Silent: j.silent,
			Since: j.since, Until: j.until, Breakers: e.breakersLocked(),
		})
	}
	slices.SortFunc(s.Instances, func(a, b InstanceStatus[H, R]) int { return strings.Compare(a.Instance.Key(), b.Instance.Key()) })
	return s
}

// Adjusted returns a list with the changes of the function of Adjust.
func (cl *Cluster[H, R]) Adjusted(list []registry.Instance) []registry.Instance {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.adjustedLocked(list)
}

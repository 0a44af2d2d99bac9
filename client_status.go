package anser

import (
	"time"

	"github.com/anser-rpc/anser/internal/cluster"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
)

// InstanceStatus describes one instance as a client sees it.
type InstanceStatus struct {
	registry.Instance
	Connected bool          // a connection takes calls
	Down      bool          // unreachable at the last attempt
	Held      bool          // no longer listed, but kept, as too many were removed at once
	Active    int64         // attempts in flight
	Latency   time.Duration // average of recent calls; 0: none yet

	Outside      bool            // not in the client's subset: see [Subset]
	Ejected      string          // why it gets no calls, or "": see [OutlierDetection]
	EjectedUntil time.Time       // when a call probes it; zero if unknown, or not ejected
	Ejections    int             // ejections in a row
	Breakers     []BreakerStatus // breakers that are not closed, or have counted failures
}

// ClientStatus describes what a client knows of its service.
type ClientStatus struct {
	Target    string
	Service   string                 // name of the service in its registry; "" for fixed instances
	Instances []InstanceStatus       // sorted by key
	Updated   time.Time              // when the registry last gave a list; zero: never
	Snapshot  bool                   // the list was loaded from disk
	Saved     time.Time              // if so, when it was saved
	Trouble   error                  // why the registry is unreachable now, or nil
	Since     time.Time              // when that began: the list may be out of date from then on
	Subset    int                    // number of instances that the client uses; 0: all. See [Subset]
	Health    map[HealthChange]int64 // number of changes of the health of instances
	// Compression has the counters of compressed requests, by method and algorithm.
	Compression []CompressionStats
	// Backup has the counters of second attempts, by method.
	Backup []BackupStats
	// Failback describes the calls that are retried in the background.
	Failback FailbackStats
	// Ignored counts the calls with the mode [Failsafe] that failed and returned nil.
	Ignored int64
	// Rules describes the rules that the client follows. It is nil before the first report of a
	// router, and for a client without one whose registry keeps no documents. If the registry keeps
	// documents, NotFollowed is true.
	Rules *RulesStatus
}

// Status returns what the client knows of its service's instances, and how old that knowledge is.
func (c *Client) Status() ClientStatus {
	if !c.exists() {
		return ClientStatus{}
	}
	st := c.clusterStatus()
	for name, m := range c.methods.all() {
		st.Compression = appendCompressionStats(st.Compression, name, &m.gains)
		st.Backup = m.backupStats(st.Backup)
	}
	sortBackups(st.Backup)
	st.Failback = c.later.stats()
	st.Ignored = c.ignored.Load()
	sortCompression(st.Compression)
	if c.routerContext != nil {
		c.mu.Lock()
		st.Rules = c.routerContext.status
		c.mu.Unlock()
	} else if c.unfollowedRules() != nil {
		st.Rules = &RulesStatus{NotFollowed: true}
	}
	return st
}

// clusterStatus returns the part of the status that the cluster knows.
func (c *Client) clusterStatus() ClientStatus {
	known, now := c.cluster.Status(), mono.Now()
	s := ClientStatus{
		Target: c.target, Service: c.source.service, Updated: known.Updated, Snapshot: known.Stale, Trouble: known.Trouble, Since: known.Since,
		Subset: known.Subset, Health: make(map[HealthChange]int64),
	}
	if known.Stale {
		s.Saved = known.Saved
	}
	for change, n := range known.Changes {
		if n > 0 {
			s.Health[healthChanges[change]] = n
		}
	}
	for i := range known.Instances {
		e := &known.Instances[i]
		in := InstanceStatus{
			Instance: e.Instance, Connected: e.Connected, Down: e.Missing, Held: e.Held,
			Active: e.Endpoint.Active(), Latency: e.Endpoint.Latency(),
			Outside: e.Outside, Breakers: breakerStatuses(e.Breakers, now),
		}
		if e.Standing != cluster.InUse {
			in.Ejected, in.Ejections = e.Why, e.Ejections
			if !e.Silent && e.Until > now {
				in.EjectedUntil = clockTime(e.Until, now)
			}
		}
		s.Instances = append(s.Instances, in)
	}
	return s
}

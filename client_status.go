package anser

import (
	"time"

	"github.com/anser-rpc/anser/registry"
)

// InstanceStatus is one instance as a client sees it.
type InstanceStatus struct {
	registry.Instance
	Connected bool          // a connection takes calls
	Down      bool          // it could not be reached when last tried
	Held      bool          // the registry no longer lists it, but took away too many at once
	Active    int64         // attempts in flight
	Latency   time.Duration // average of recent calls; 0: none yet

	Outside      bool            // it is left out of the client's subset: see [Subset]
	Ejected      string          // why it gets no calls, or "": see [OutlierDetection]
	EjectedUntil time.Time       // when a call tries it; zero if it is not known, or not ejected
	Ejections    int             // in a row
	Breakers     []BreakerStatus // that are not closed, or have failures to count
}

// ClientStatus is what a client knows of its service.
type ClientStatus struct {
	Target    string
	Instances []InstanceStatus       // sorted by key
	Updated   time.Time              // when the registry last gave a list; zero: never
	Snapshot  bool                   // the list is one that was saved on disk
	Saved     time.Time              // when, if it is
	Trouble   error                  // why the registry cannot be reached now, or nil
	Since     time.Time              // when that began: the list may be out of date from then on
	Subset    int                    // so many of the instances the client uses; 0: all. See [Subset]
	Health    map[HealthChange]int64 // how often what has happened to instances
	// Compression tells what compressing requests has been like, by method and algorithm.
	Compression []CompressionStats
	// Backup tells what second attempts did, by method.
	Backup []BackupStats
	// Failback tells of the calls that are tried again in the background.
	Failback FailbackStats
	// Ignored counts the calls with the mode [Failsafe] that failed and returned nil.
	Ignored int64
	// Rules tells by which rules the client steers; nil before the first report of a router, and for a client
	// without one whose registry keeps no documents. With a registry that does, NotFollowed is true.
	Rules *RulesStatus
}

// Status tells what the client knows of its service's instances, and how old that knowledge is.
func (c *Client) Status() ClientStatus {
	if !c.exists() {
		return ClientStatus{}
	}
	st := c.cluster.status()
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

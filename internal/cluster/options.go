package cluster

import (
	"log/slog"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// Options are what a client makes its cluster with. All functions are called with the lock of the
// cluster held, except where noted.
type Options[H Host, R comparable] struct {
	Balancer  balance.Balancer
	Breaker   BreakerOptions
	Ejection  EjectionOptions
	Subset    SubsetOptions
	SlowStart time.Duration // during which a new instance gets its weight; 0: at once
	Log       *slog.Logger

	// Acquire returns the host for the address of an instance. From then on the host calls the
	// methods Rebuild, after its state has changed, and Wary of the cluster.
	Acquire func(address string) H
	// Release gives a host back. It is called without the lock, and may block.
	Release func(H)
	// Refresh asks the registry for a new list, as no instance can be reached. It must not block.
	Refresh func()
	// Emit reports a change of the health of an instance. It is called without the lock, on the
	// goroutine that judges.
	Emit func(Event)
	// Filters returns the filters of a route; nil if there is no router. It is called without the
	// lock.
	Filters func(R) []Filter
}

// BreakerOptions configure the circuit breakers: one per instance and method.
type BreakerOptions struct {
	Off    bool
	Ratio  float64       // of the attempts that fail, at which a breaker opens
	Calls  int           // attempts within the window that it takes
	Window time.Duration // at least 100 ms
	Open   time.Duration // until the first probe
	Codes  []uint8       // of errors from handlers that count as failures
}

// EjectionOptions configure the ejection of instances, for all methods at once.
type EjectionOptions struct {
	Off        bool
	Failures   int     // refusals in a row
	Timeouts   int     // timeouts in a row, without a byte received
	Deviations float64 // of the success rate below the mean
	Calls      int     // attempts within the window for a comparison with other instances
	Slow       float64 // multiple of the median latency; 0: latencies are not compared
	Time       time.Duration
	MaxTime    time.Duration
	MaxPart    float64 // of the reachable instances that may be ejected
}

// SubsetOptions configure how many instances of a large service are used.
type SubsetOptions struct {
	From int    // number of instances from which a service is large; 0: all instances are used
	Size int    // of the subset
	Seed uint64 // of the choice; each process has its own
}

// Filter is a step of a route.
type Filter struct {
	Name   string // for people
	Keep   func(in *registry.Instance) bool
	Strict bool // if no reachable instance remains, none is used; otherwise the filter is skipped
}

package balance

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// Endpoint is one instance as a balancer sees it: what the registry says of it and what its
// calls showed. The client keeps one Endpoint for an instance as long as it knows the instance, so
// the figures outlive a change of the list. All methods are safe for concurrent use.
type Endpoint struct {
	instance atomic.Pointer[registry.Instance]
	active   atomic.Int64
	latency  atomic.Uint64 // float64 bits, nanoseconds; 0: not measured yet
	measured atomic.Int64  // nanoseconds since the process's epoch, of the last sample
}

// NewEndpoint returns an endpoint without history.
func NewEndpoint(in registry.Instance) *Endpoint {
	e := new(Endpoint)
	e.SetInstance(in)
	return e
}

// Instance returns what the registry says of the endpoint. The result must not be changed.
func (e *Endpoint) Instance() *registry.Instance { return e.instance.Load() }

// SetInstance replaces what the registry says of the endpoint.
func (e *Endpoint) SetInstance(in registry.Instance) { in = in.Clone(); e.instance.Store(&in) }

// Active returns the number of attempts in flight.
func (e *Endpoint) Active() int64 { return e.active.Load() }

// Begin counts an attempt in; each is followed by one End or Abort.
func (e *Endpoint) Begin() { e.active.Add(1) }

// Abort counts an attempt out that says nothing about the endpoint's latency.
func (e *Endpoint) Abort() { e.active.Add(-1) }

// decay is the time constant of the latency average.
const decay = float64(10 * time.Second)

// End counts an attempt out that took d and ended at now, a monotonic time in nanoseconds. The
// average is Finagle's peak EWMA: it jumps up to a slow sample at once and forgets with a time
// constant of ten seconds.
func (e *Endpoint) End(now int64, d time.Duration) {
	e.active.Add(-1)
	e.Observe(now, d)
}

// Observe adds a latency sample without counting an attempt out.
func (e *Endpoint) Observe(now int64, d time.Duration) {
	sample := float64(max(d, 1))
	before := e.measured.Swap(now)
	old := math.Float64frombits(e.latency.Load())
	if old != 0 && sample < old {
		// A lost update between racing samples costs one sample of an average.
		w := math.Exp(-float64(max(now-before, 0)) / decay)
		sample = old*w + sample*(1-w)
	}
	e.latency.Store(math.Float64bits(sample))
}

// Latency returns the average latency, or 0 before the first sample.
func (e *Endpoint) Latency() time.Duration {
	return time.Duration(math.Float64frombits(e.latency.Load()))
}

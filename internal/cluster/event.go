package cluster

import (
	"time"

	"github.com/anser-rpc/anser/registry"
)

// Change is a change of the health of an instance.
type Change uint8

// The changes, and their number.
const (
	InstanceEjected  Change = iota // the instance gets no calls
	InstanceRestored               // the instance gets calls again
	BreakerOpened                  // the instance gets no calls of one method
	BreakerHalfOpen                // the instance gets single calls of the method, as probes
	BreakerClosed                  // the instance gets all calls of the method again
	Changes
)

// Event reports a change of the health of an instance.
type Event struct {
	Change   Change
	Instance registry.Instance
	Method   string    // method of a breaker, otherwise empty
	Reason   string    // reason in words
	Until    time.Time // when a call tries the instance again, or zero if unknown
	Again    bool      // a probe failed: the instance was out of use before, too
}

// noteLocked queues an event, which is emitted once the lock is released. again is its field Again.
func (cl *Cluster[H, R]) noteLocked(e *Endpoint[H, R], change Change, method, reason string, until time.Duration, again bool) {
	ev := Event{Change: change, Instance: e.Instance().Clone(), Method: method, Reason: reason, Again: again}
	if until > 0 {
		ev.Until = time.Now().Add(until)
	}
	cl.events = append(cl.events, ev)
	cl.changes[change]++
}

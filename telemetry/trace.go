package telemetry

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// tracedSize is the number of calls of recorded traces that are kept.
	tracedSize = 1024
	// tracedPace is the number of them a second up to which all are kept.
	tracedPace = 32
)

// traces keeps the latest calls whose traces are recorded. If there are many, it keeps a half, a
// quarter and so on of the traces, chosen by their ids: so all processes keep the same ones, and
// traces of the last half minute rather than of the last moment.
type traces struct {
	ring
	turned atomic.Int64 // second for which seen counts
	seen   atomic.Int64
	zeros  atomic.Int32 // at the end of the id of a trace that is kept
}

// admits reports whether a call of the trace is kept.
func (t *traces) admits(id [16]byte) bool {
	if now := time.Now().Unix(); t.turned.Swap(now) != now {
		t.zeros.Store(int32(bits.Len64(uint64(t.seen.Swap(0)) / tracedPace)))
	}
	t.seen.Add(1)
	if bits.TrailingZeros64(binary.BigEndian.Uint64(id[8:])) < int(t.zeros.Load()) {
		t.skipped.Add(1)
		return false
	}
	return t.ring.admits()
}

// Trace returns the calls of a trace that the meter remembers, in the order in which they began.
// id has 32 digits of lower-case hexadecimal. The meter remembers the latest calls that failed,
// that were slow or whose trace is recorded, and the slowest call of each method. The records are
// shared: do not change them.
func (m *Meter) Trace(id string) (calls []*Call) {
	if !m.made() {
		return nil
	}
	take := func(c *Call) {
		if c != nil && c.TraceID == id && !slices.Contains(calls, c) {
			calls = append(calls, c)
		}
	}
	for _, r := range []*ring{&m.traced.ring, &m.failures, &m.slow} {
		for _, c := range r.list() {
			take(c)
		}
	}
	m.server.each(func(k *method) { take(k.slowest.latest()) })
	for _, side := range *m.known.Load() {
		side.each(func(k *method) { take(k.slowest.latest()) })
	}
	slices.SortStableFunc(calls, func(a, b *Call) int {
		return cmp.Or(a.Began().Compare(b.Began()), cmp.Compare(b.Duration, a.Duration))
	})
	return calls
}

// Began returns when the call began, by the clock of its process.
func (r *Call) Began() time.Time { return r.Time.Add(-r.Duration) }

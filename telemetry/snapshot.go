package telemetry

import (
	"cmp"
	"slices"
	"time"

	"github.com/anser-rpc/anser"
)

// Snapshot is what a [Meter] knows at a time. Counters and histograms only grow.
type Snapshot struct {
	Time    time.Time
	Methods []Method // sorted by side, target and name
}

// Method has what was measured of a method.
type Method struct {
	Server bool   // the calls of servers; otherwise those of clients
	Target string // on the client, the target that was dialed; see [TargetName]
	Name   string // or [Other]
	Codes  []Series

	Retried  uint64 // calls with more than one attempt; on the server, calls that were further attempts
	Refused  uint64 // on the server, calls that did not run; they are in Codes
	Replayed uint64 // on the server, calls that got the reply of an earlier one

	// On the server, sums over the calls that ran.
	RequestBytes, ReplyBytes      uint64
	Queue, Decode, Handle, Encode time.Duration

	// Slowest is the slowest call of the last one to two minutes, or nil. It is shared: do not
	// change it.
	Slowest *Call
}

// Series has the durations of the calls that ended with one code. For refused calls they are 0.
type Series struct {
	Code     anser.Code
	Times    Histogram
	Exemplar *Exemplar // the latest one, or nil
}

// Calls returns how many calls have ended, and how many of them failed.
func (m *Method) Calls() (all, failed uint64) {
	for i := range m.Codes {
		s := &m.Codes[i]
		if all += s.Times.Count; s.Code != anser.OK {
			failed += s.Times.Count
		}
	}
	return all, failed
}

// Times returns the durations of all calls.
func (m *Method) Times() (h Histogram) {
	for i := range m.Codes {
		h.Add(&m.Codes[i].Times)
	}
	return h
}

// Snapshot returns what was measured so far.
func (m *Meter) Snapshot() Snapshot {
	s := Snapshot{Time: time.Now()}
	if !m.made() {
		return s
	}
	add := func(of *side, server bool) {
		of.each(func(k *method) { s.Methods = append(s.Methods, k.snapshot(server, TargetName(of.target))) })
	}
	add(&m.server, true)
	for _, c := range *m.known.Load() {
		add(c, false)
	}
	slices.SortFunc(s.Methods, func(a, b Method) int {
		if a.Server != b.Server {
			if a.Server {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Name, b.Name))
	})
	return s
}

// Failures returns the latest calls that failed, the last one first, and how many were left out
// because there were more than 500 in a second. The records are shared: do not change them.
func (m *Meter) Failures() (calls []*Call, skipped uint64) {
	if !m.made() {
		return nil, 0
	}
	return m.failures.list(), m.failures.skipped.Load()
}

// SlowCalls does the same for the slow calls; see [Slow].
func (m *Meter) SlowCalls() (calls []*Call, skipped uint64) {
	if !m.made() {
		return nil, 0
	}
	return m.slow.list(), m.slow.skipped.Load()
}

// Package loglimit keeps events that may come very often from filling a log.
package loglimit

import (
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// Seldom counts events that are logged only once in a while. It is safe for concurrent use; the
// zero value has seen none.
type Seldom struct {
	next  mono.Atomic  // time from which the next line may be logged
	count atomic.Int64 // since the last line
}

// seldomEvery is the minimum time between two lines.
const seldomEvery = time.Minute

// Note counts an event, and returns the number of events to log now, or 0 if no line is due.
func (s *Seldom) Note(now mono.Time) int64 {
	s.count.Add(1)
	next := s.next.Load()
	if next != 0 && now < next || !s.next.CompareAndSwap(next, now.Add(seldomEvery)) {
		return 0
	}
	return s.count.Swap(0)
}

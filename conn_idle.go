package anser

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
)

// idleness records since when no call was made on a connection. It is owned by the maintenance.
type idleness struct {
	calls uint64    // a value that changes with every call, at the last check
	open  bool      // calls were open at the last check
	since mono.Time // time of the first check without a call, or 0
}

// note returns for how long no call has been made.
func (i *idleness) note(now mono.Time, calls uint64, open bool) time.Duration {
	if open || i.open || calls != i.calls || i.since == 0 {
		i.calls, i.since = calls, now
	}
	i.open = open
	return now.Sub(i.since)
}

// restAfter is how long a client's connection must have been without a call for its end to mean
// that it is not needed: no successor is made before the next call.
const restAfter = 2 * upkeep.Interval

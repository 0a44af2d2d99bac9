package anser

import (
	"time"

	"github.com/anser-rpc/anser/internal/upkeep"
)

// Maintenance of connections. An active connection is checked every tendEvery. A quiet one is
// checked when something is next due for it, such as a ping, and when a byte has been read or
// written since (Task.Stir in conn_reader.go and conn_writer.go). See
// docs/decisions/0048-maintenance-when-something-is-due.md.

// neverDue is the due time of work that need not be done.
const neverDue = upkeep.Never

// after returns the first time at which more than d has passed since a time. d may be too large
// for such a time to come.
func after(since int64, d time.Duration) int64 {
	if int64(d) >= neverDue-since {
		return neverDue
	}
	return since + int64(d) + 1
}

// transferDue returns when reading and writing must be checked again: about every second while a
// write or a frame is under way or bytes arrive, and when one of them may be late.
func (c *conn) transferDue(now int64, o *keepaliveOptions) (due int64) {
	due = neverDue
	if now-c.progress.lastRead.Load() < int64(tendEvery) {
		due = now + int64(tendEvery)
	}
	if since := c.stalledSince(); since != 0 {
		due = min(now+int64(tendEvery), after(since, o.writeStall))
	}
	if since := c.progress.partial.Load(); since != 0 {
		due = min(due, now+int64(tendEvery))
		if late := after(since, o.readTimeout); o.readTimeout != 0 && late > now {
			due = min(due, late)
		}
	}
	return due
}

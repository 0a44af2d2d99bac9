package anser

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
)

// Maintenance of connections. An active connection is checked every upkeep.Interval. A quiet one is
// checked when something is next due for it, such as a ping, and when a byte has been read or
// written since (Task.Stir in conn_reader.go and conn_writer.go). See
// docs/decisions/0048-maintenance-when-something-is-due.md.

// after returns the first time at which more than d has passed since a time. d may be too large
// for such a time to come.
func after(since mono.Time, d time.Duration) mono.Time {
	if d >= upkeep.Never.Sub(since) {
		return upkeep.Never
	}
	return since.Add(d + 1)
}

// transferDue returns when reading and writing must be checked again: about every second while a
// write or a frame is under way or bytes arrive, and when one of them may be late.
func (c *conn) transferDue(now mono.Time, o *keepaliveOptions) (due mono.Time) {
	due = upkeep.Never
	if now.Sub(c.progress.lastRead.Load()) < upkeep.Interval {
		due = now.Add(upkeep.Interval)
	}
	if since := c.stalledSince(); since != 0 {
		due = min(now.Add(upkeep.Interval), after(since, o.writeStall))
	}
	if since := c.progress.since(); since != 0 {
		due = min(due, now.Add(upkeep.Interval))
		if late := after(since, o.readTimeout); o.readTimeout != 0 && late > now {
			due = min(due, late)
		}
	}
	return due
}

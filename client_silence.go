package anser

import (
	"errors"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
)

// A process that is stopped, or a machine that is gone without notice, keeps its connections for a
// long time. If there are other instances, a client checks earlier than keepalive does: it sends a
// ping when calls are open and nothing arrives. An instance that does not answer gets no more
// calls and is ejected (package cluster). Idempotent calls that wait there move to another
// instance; the connection stays until keepalive gives it up, as the other calls on it may still
// be answered.

const (
	doubtAfter  = time.Second             // without a byte while a call is open
	silentAfter = 1500 * time.Millisecond // without an answer to the ping
	doubtEvery  = 5 * time.Second         // between two such pings at least
	lostTrack   = 500 * time.Millisecond  // a look that is this late means that this process itself was stopped
)

// probeDue returns when the connection has been quiet for so long that it should be asked. Streams
// may be quiet.
func (c *callerHalf) probeDue() mono.Time {
	if !c.host.judged.Load() || c.busy.Load() <= c.streaming.Load() {
		return upkeep.Never
	}
	return max(after(c.progress.lastRead.Load(), doubtAfter), after(c.asked, pingAfter(doubtEvery, &c.peer)))
}

// tend records whether the host answers pings, and notifies the clusters of a change. A single
// connection that has received bytes since is enough. tend runs when the answer to a ping may be
// late, and while the host is silent.
func (h *host) tend(now, was mono.Time) (due mono.Time) {
	if now.Sub(was) > lostTrack {
		return now.Add(upkeep.Interval) // the answers may be here, and unread
	}
	due = upkeep.Never
	var asked, heard mono.Time
	for _, c := range *h.ready.Load() {
		if since := c.pinged.Load(); since != 0 {
			if late := after(since, silentAfter); now >= late {
				asked = max(asked, since)
			} else {
				due = min(due, late)
			}
		}
		heard = max(heard, c.progress.lastRead.Load())
	}
	silent := asked != 0 && heard <= asked
	if h.silent.Swap(silent) != silent {
		h.mu.Lock()
		tell := h.changedLocked()
		h.mu.Unlock()
		tell()
	}
	if !silent {
		return due
	}
	for _, c := range *h.ready.Load() { // again with each look: a call may have come, and the budget may have grown
		c.moveCalls(now)
	}
	return now.Add(upkeep.Interval)
}

var errSilent = errors.New("the instance does not answer pings")

// moveCalls ends the attempts of calls that can be retried elsewhere. The retry budget pays for
// each one before it is ended: a call without budget continues to wait, as it may still be
// answered. If the connection recovers, the instance finds the calls cancelled, and an answer that
// is already in flight is dropped.
func (c *callerHalf) moveCalls(now mono.Time) {
	var moved []*call
	c.mu.Lock()
	if c.err == nil {
		c.open.Each(func(k *call) {
			if k.mover != nil && k.mover.move(k.route, c.host, now) {
				moved = append(moved, k)
			}
		})
	}
	for _, k := range moved {
		c.open.Take(k.id)
		k.failed = failure(Unavailable, OutcomeUnknown, PhaseWait, errSilent, "%v", errSilent)
		k.failed.moved = true
		c.cancelLocked(k, false, now)
	}
	if len(moved) > 0 {
		c.busy.Store(int32(c.open.Len()))
	}
	c.mu.Unlock()
	for _, k := range moved {
		k.over()
	}
	if len(moved) > 0 {
		c.interruptCaller()
	}
}

package anser

import (
	"errors"
	"time"
)

// A process that is stopped, and a machine that is gone without a word, keep their connections for a long
// time. Where there are other instances, a client asks sooner than keepalive does: with a ping, when calls are open
// and nothing comes. An instance that does not answer gets no more calls and is ejected (cluster_ejection.go). Idempotent calls that
// wait there are moved to another instance; the connection stays until keepalive gives it up, as the other calls
// on it may still be answered.

const (
	doubtAfter  = time.Second             // without a byte while a call is open
	silentAfter = 1500 * time.Millisecond // without an answer to the ping
	doubtEvery  = 5 * time.Second         // between two such pings at least
	lostTrack   = 500 * time.Millisecond  // by which a look is late: this process itself stood still
)

// probeDue returns when the connection has been quiet for so long that it should be asked. Streams
// may be quiet.
func (c *callerHalf) probeDue() int64 {
	if !c.host.judged.Load() || c.busy.Load() <= c.streaming.Load() {
		return neverDue
	}
	return max(after(c.progress.lastRead.Load(), doubtAfter), after(c.asked, pingAfter(doubtEvery, &c.peer)))
}

// tend notes whether the host answers pings, and tells the clusters if that has changed. A
// connection over which something came since counts for all. It runs when the answer to a ping may
// be late, and while the host is silent.
func (h *host) tend(now, was int64) (due int64) {
	if now-was > int64(lostTrack) {
		return now + int64(tendEvery) // the answers may be here, and unread
	}
	due = neverDue
	var asked, heard int64
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
	return now + int64(tendEvery)
}

var errSilent = errors.New("the instance does not answer pings")

// moveCalls ends the attempts of calls that may be made again elsewhere. The retry budget pays for each before it is ended: one
// that is not paid for waits on, as it may still be answered. Where the connection comes back to life, the
// instance finds the calls cancelled, and an answer that is already on its way is dropped.
func (c *callerHalf) moveCalls(now int64) {
	var moved []*call
	c.mu.Lock()
	if c.err == nil {
		c.open.Each(func(k *call) {
			if k.mover != nil && k.mover.wouldMove(k.route, c.host) && k.mover.budget.Withdraw(now) {
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

// wouldMove reports whether a call of the route that waits at a silent host can be made elsewhere.
func (c *Client) wouldMove(route *Route, from *host) bool {
	if c.o.ejection.Off {
		return false
	}
	v := c.cluster.view.Load()
	if v != nil && route != nil {
		v = v.forRoute(route)
	}
	if v == nil {
		return false
	}
	for _, e := range v.byPick {
		if e.host != from && e.host.connected() && !e.host.silent.Load() {
			return true
		}
	}
	return false
}

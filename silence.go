package anser

import (
	"time"

	"github.com/anser-rpc/anser/wire"
)

// A process that is stopped, and a machine that is gone without a word, keep their connections for a long
// time. Where there are other instances, a client asks sooner than keepalive does: with a ping, when calls are open
// and nothing comes. An instance that does not answer is ejected (ejection.go); the connection
// stays until keepalive gives it up, as the calls on it may still be answered.

const (
	doubtAfter  = time.Second             // without a byte while a call is open
	silentAfter = 1500 * time.Millisecond // without an answer to the ping
	doubtEvery  = 5 * time.Second         // between two such pings at least
	lostTrack   = 2500 * time.Millisecond // between two looks, which are a second apart: this process itself stood still
)

// doubts reports whether the connection is so quiet that it should be asked. Streams may be quiet.
func (c *clientConn) doubts(now int64) bool {
	return c.host.judged.Load() && c.busy.Load() > c.streaming.Load() &&
		now-c.progress.lastRead.Load() > int64(doubtAfter) && now-c.asked > pingAfter(doubtEvery, &c.peer)
}

// ask sends a ping.
func (c *clientConn) ask(now int64) {
	c.asked = now
	c.pinged.Store(now)
	c.post(wire.AppendPing(nil, wire.TypePing, uint64(now)))
}

// judgeSilence notes whether the host answers pings, and tells the clusters if that has changed. A
// connection over which something came since counts for all.
func (h *host) judgeSilence(now int64) {
	last := h.judgedAt
	h.judgedAt = now
	if last != 0 && now-last > int64(lostTrack) {
		return // the answers may be here, and unread
	}
	var asked, heard int64
	for _, c := range *h.ready.Load() {
		if since := c.pinged.Load(); since != 0 && now-since > int64(silentAfter) {
			asked = max(asked, since)
		}
		heard = max(heard, c.progress.lastRead.Load())
	}
	silent := asked != 0 && heard <= asked
	if h.silent.Swap(silent) == silent {
		return
	}
	h.mu.Lock()
	tell := h.changedLocked()
	h.mu.Unlock()
	tell()
}

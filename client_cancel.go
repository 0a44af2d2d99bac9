package anser

import (
	"time"

	"github.com/anser-rpc/anser/internal/cancelpace"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// The server closes a connection with too many CANCEL frames (see cancelpace.Limit). A client
// therefore sends none for a call whose deadline has passed, since the server knows the deadline,
// and sends the others at a rate that the server accepts.

// giveUp is giveUpLocked for a call without a deadline.
func (c *callerHalf) giveUp(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.takesFramesLocked() {
		c.giveUpLocked(id, mono.Now(), 0)
	}
}

// giveUpLocked tells the server, now or when its turn comes, that the call was given up. until is
// the time at which the server ends the call by itself, or 0.
func (c *callerHalf) giveUpLocked(id uint64, now, until mono.Time) {
	if c.cancels.Allow(now, c.peer.MaxCalls) {
		c.appendLocked(wire.AppendCancel(nil, id|c.idBit))
		c.flushInBackgroundLocked()
		return
	}
	c.cancels.Add(id, until)
	c.owed.Store(int32(c.cancels.Owed()))
	if c.cancelTimer == nil {
		c.cancelTimer = time.AfterFunc(cancelpace.Pause, c.sendCancels)
	} else if c.cancels.Owed() == 1 {
		c.cancelTimer.Reset(cancelpace.Pause)
	}
}

// sendCancels sends the CANCELs whose turn has come.
func (c *callerHalf) sendCancels() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.takesFramesLocked() {
		c.dropCancelsLocked()
		return
	}
	now, before := mono.Now(), len(c.buf)
	for len(c.buf) <= maxBuffered {
		id, ok := c.cancels.Next(now, c.peer.MaxCalls)
		if !ok {
			break
		}
		c.appendLocked(wire.AppendCancel(nil, id|c.idBit))
	}
	if len(c.buf) > before {
		c.flushInBackgroundLocked()
	}
	c.owed.Store(int32(c.cancels.Owed()))
	if c.cancels.Owed() > 0 {
		c.cancelTimer.Reset(cancelpace.Pause)
	}
}

// dropCancelsLocked drops the CANCELs that wait when the connection has ended.
func (c *callerHalf) dropCancelsLocked() {
	c.cancels.Clear()
	c.owed.Store(0)
	if c.cancelTimer != nil {
		c.cancelTimer.Stop()
	}
}

// answeredLocked drops the CANCEL of a call that the server has answered in the meantime.
func (c *callerHalf) answeredLocked(id uint64) {
	if c.cancels.Owed() == 0 {
		return
	}
	c.cancels.Answered(id)
	c.owed.Store(int32(c.cancels.Owed()))
}

// load returns how much of the server's limit the connection uses: open calls, and calls cancelled
// here but not yet at the server.
func (c *callerHalf) load() int32 { return c.busy.Load() + c.owed.Load() }

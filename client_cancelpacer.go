package anser

import (
	"time"

	"github.com/anser-rpc/anser/wire"
)

// The server closes a connection with too many CANCEL frames (see cancelLimit). A client therefore
// sends none for a call whose deadline has passed, since the server knows the deadline, and sends
// the others at a rate that the server accepts. CANCELs that must wait are a list of ids; a call
// leaves it when its answer arrives or its deadline passes.

const (
	cancelPace  = 16_000               // sustained CANCEL frames per second; below cancelRate
	cancelPause = 5 * time.Millisecond // between two batches of delayed CANCELs
	growOwed    = 1000                 // with this many CANCELs waiting, another connection would help
)

// cancelPacer paces the CANCELs of a connection. The zero value is ready for use; it is guarded by
// the mutex of the connection.
type cancelPacer struct {
	level float64 // of the bucket, which every CANCEL fills and time empties
	last  int64   // nanotime at which level was last updated

	queue []owedCancel        // in the order of the calls' ends
	owed  map[uint64]struct{} // ids in the queue whose CANCEL is still owed
	timer *time.Timer         // runs while owed is not empty
}

type owedCancel struct {
	id    uint64
	until int64 // nanotime by which the server has ended the call by itself; 0: never
}

// allow reports whether a CANCEL may be sent now, and counts it.
func (p *cancelPacer) allow(now int64, maxCalls uint64) bool {
	if now > p.last {
		p.level = max(0, p.level-float64(now-p.last)/1e9*cancelPace)
		p.last = now
	}
	if p.level+1 > float64(max(maxCalls, 1)) {
		return false
	}
	p.level++
	return true
}

// add queues a CANCEL that must wait.
func (p *cancelPacer) add(id uint64, until int64) {
	if p.owed == nil {
		p.owed = make(map[uint64]struct{})
	}
	if len(p.queue) > 2*len(p.owed)+growOwed { // most of the queue was answered
		p.compact()
	}
	p.owed[id] = struct{}{}
	p.queue = append(p.queue, owedCancel{id, until})
}

// compact drops entries that are no longer owed from the queue.
func (p *cancelPacer) compact() {
	kept := p.queue[:0]
	for _, o := range p.queue {
		if _, ok := p.owed[o.id]; ok {
			kept = append(kept, o)
		}
	}
	p.queue = kept
}

// next returns the id of the next CANCEL to send, if any may be sent now.
func (p *cancelPacer) next(now int64, maxCalls uint64) (id uint64, ok bool) {
	for len(p.queue) > 0 {
		o := p.queue[0]
		if _, due := p.owed[o.id]; due && (o.until == 0 || now < o.until) {
			if !p.allow(now, maxCalls) {
				return 0, false
			}
			p.pop(o.id)
			return o.id, true
		}
		p.pop(o.id)
	}
	p.queue = nil
	return 0, false
}

func (p *cancelPacer) pop(id uint64) {
	p.queue = p.queue[1:]
	delete(p.owed, id)
}

// stop drops the owed CANCELs when the connection has ended.
func (p *cancelPacer) stop() {
	p.queue, p.owed = nil, nil
	if p.timer != nil {
		p.timer.Stop()
	}
}

// giveUp is giveUpLocked for a call without a deadline.
func (c *callerHalf) giveUp(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.takesFramesLocked() {
		c.giveUpLocked(id, nanotime(), 0)
	}
}

// giveUpLocked tells the server, now or when its turn comes, that the call was given up. until is
// the nanotime at which the server ends the call by itself, or 0.
func (c *callerHalf) giveUpLocked(id uint64, now, until int64) {
	if len(c.cancels.owed) == 0 && c.cancels.allow(now, c.peer.MaxCalls) {
		c.appendLocked(wire.AppendCancel(nil, id|c.idBit))
		c.flushInBackgroundLocked()
		return
	}
	c.cancels.add(id, until)
	c.owed.Store(int32(len(c.cancels.owed)))
	if c.cancels.timer == nil {
		c.cancels.timer = time.AfterFunc(cancelPause, c.sendCancels)
	} else if len(c.cancels.owed) == 1 {
		c.cancels.timer.Reset(cancelPause)
	}
}

// sendCancels sends the CANCELs whose turn has come.
func (c *callerHalf) sendCancels() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.takesFramesLocked() {
		c.cancels.stop()
		return
	}
	now, before := nanotime(), len(c.buf)
	for len(c.buf) <= maxBuffered {
		id, ok := c.cancels.next(now, c.peer.MaxCalls)
		if !ok {
			break
		}
		c.appendLocked(wire.AppendCancel(nil, id|c.idBit))
	}
	if len(c.buf) > before {
		c.flushInBackgroundLocked()
	}
	c.owed.Store(int32(len(c.cancels.owed)))
	if len(c.cancels.owed) > 0 {
		c.cancels.timer.Reset(cancelPause)
	}
}

// answeredLocked drops the CANCEL of a call that the server has answered in the meantime.
func (c *callerHalf) answeredLocked(id uint64) {
	if len(c.cancels.owed) == 0 {
		return
	}
	delete(c.cancels.owed, id)
	c.owed.Store(int32(len(c.cancels.owed)))
}

// load returns how much of the server's limit the connection uses: open calls, and calls cancelled
// here but not yet at the server.
func (c *callerHalf) load() int32 { return c.busy.Load() + c.owed.Load() }

package anser

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/internal/upkeep"
	"github.com/anser-rpc/anser/wire"
)

// clientConn is one connection to a server, shared by the clients of the process.
type clientConn struct {
	callerHalf
	link    conn                         // shared by both halves
	inbound atomic.Pointer[inboundCalls] // the callee half, once the server has made a call
	wg      sync.WaitGroup
	renewal *renewal // nil: no credential was shown

	idle      idleness  // owned by tend
	idleSince mono.Time // time since which every look has found nothing open, or 0; owned by tend
}

// control handles every frame except REPLY and ERROR.
func (c *clientConn) control(h wire.Header, body []byte) error {
	switch h.Type {
	case wire.TypeData, wire.TypeEnd, wire.TypeWindow:
		return c.streamFrame(h, body)
	case wire.TypePart:
		return c.part(h, body)
	case wire.TypeMethod, wire.TypeRequest, wire.TypeCancel:
		return c.called(h, body)
	}
	answers, drain, err := c.conn.control(nil, h, body, "server")
	if len(answers) > 0 {
		return c.answerAtOnce(answers)
	}
	if drain && h.Flags&wire.FlagAck == 0 { // an ACK that answers nothing
		c.drain()
	}
	return err
}

// info describes the connection to observers.
func (c *clientConn) info() ConnInfo {
	i := ConnInfo{Address: c.host.instance(), Peer: Peer{Addr: c.nc.RemoteAddr(), Local: c.nc.LocalAddr(), Checksums: c.checksums != nil}}
	if tc, ok := c.nc.(secured); ok {
		i.Peer.TLS = new(tc.ConnectionState())
	}
	return i
}

// drain takes no new calls on the connection, has the host make another one, and tells the server.
func (c *clientConn) drain() {
	c.mu.Lock()
	was := c.draining
	c.draining = true
	c.mu.Unlock()
	if was {
		return
	}
	c.host.drained(&c.callerHalf)
	c.post(wire.AppendDrain(nil, wire.FlagAck, 0))
}

// end ends both halves after the connection has ended, and returns the reason.
func (c *clientConn) end(err error) error {
	err = c.callerHalf.end(err)
	if in := c.inbound.Load(); in != nil {
		(*in).end()
	}
	return err
}

// close ends the connection from this side: no client uses it anymore.
func (c *clientConn) close() {
	if c.retire() && !c.sayBye() {
		c.sendClose(wire.Normal, "")
	}
	c.fail(errConnClosed)
	c.finishReading()
	c.wg.Wait()
}

// sayBye sends CLOSE together with the end of the connection, which follows, if nothing else is
// being written. The server then wakes up once for both.
func (c *clientConn) sayBye() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.writing && c.checksums == nil && sysconn.WriteLast(c.nc, wire.AppendClose(nil, wire.Normal, ""))
}

// retire keeps new calls off an idle connection. It fails if a call is open.
func (c *clientConn) retire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Len() > 0 || c.servesLocked() {
		return false
	}
	c.draining = true
	return true
}

// tend does the upkeep of the connection that is due, and returns when the next is due.
func (c *clientConn) tend(now, _ mono.Time) (due mono.Time) {
	if !c.isRead() {
		c.host.pool.standbys.enlist(c) // in case its caller did not come to read it
	}
	again := c.trim()
	again = c.trimStreams() || again
	due, closed := c.closeUnused(now)
	if closed {
		return upkeep.Never
	}
	if again {
		due = min(due, now.Add(upkeep.Interval))
	}
	alive, _ := c.keepAlive(now, &c.host.keepaliveOptions, c.probeDue())
	if c.asked == now {
		c.host.upkeep.By(after(now, silentAfter))
	}
	return min(due, alive, c.tendRenewal(now))
}

// spareAfter is how long connections to instances outside the subset remain without a call.
const spareAfter = time.Minute

// closeUnused closes a connection that was unused for the idle timeout, or that the load no longer
// needs, and reports whether it did; otherwise it returns when to check again.
func (c *clientConn) closeUnused(now mono.Time) (due mono.Time, closed bool) {
	c.mu.Lock()
	open := c.open.Len()
	quiet := c.idle.note(now, c.lastID, open > 0)
	c.mu.Unlock()
	c.restsFrom.Store(c.idle.since)
	if open > 0 {
		c.restsFrom.Store(0)
	}
	limit := c.host.idleTimeout
	if c.host.spare.Load() && (limit == 0 || limit > spareAfter) {
		limit = spareAfter
	}
	due = upkeep.Never
	if limit != 0 && c.host.handlers == nil {
		if quiet >= limit && c.retire() {
			c.restsFrom.Store(min(c.idle.since, now.Add(-restAfter)))
			c.closeInBackground()
			return due, true
		}
		due = after(c.idle.since, limit)
		if open > int(c.streaming.Load()) {
			due = now.Add(upkeep.Interval) // the end of a call may move no byte; the end of a stream wakes tend
		}
	}
	if !c.host.isExtra(&c.callerHalf) || open > 0 {
		c.idleSince = 0
		return due, false
	}
	if c.idleSince == 0 {
		c.idleSince = now
	}
	if end := after(c.idleSince, extraIdleAfter); now < end {
		due = min(due, end)
	} else if c.retire() {
		c.closeInBackground()
		return due, true
	}
	return due, false
}

// closeInBackground closes a retired connection.
func (c *clientConn) closeInBackground() {
	c.host.remove(&c.callerHalf, nil)
	c.host.spawn(c.close)
}

// rests reports whether the connection has been without calls for so long that its end means that
// the caller does not need it.
func (c *callerHalf) rests() bool {
	since := c.restsFrom.Load()
	return since != 0 && mono.Since(since) >= restAfter
}

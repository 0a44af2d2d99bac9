package anser

import (
	"fmt"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
	"github.com/anser-rpc/anser/wire"
)

// pingLimit counts the pings of the peer that come too fast. The zero value has counted none.
type pingLimit struct {
	last mono.Time // time of the latest ping; 0: none since the last call or reply
	fast int       // how many in a row came too fast
}

const maxFastPings = 3

// note counts a ping, or a pong that was not asked for. least is the minimum time between two of
// them.
func (p *pingLimit) note(now mono.Time, least time.Duration) error {
	if p.last == 0 || now.Sub(p.last) >= least {
		p.fast = 0
	} else if p.fast++; p.fast > maxFastPings {
		return wire.Errorf(wire.Flood, "pings more often than every %v", least)
	}
	p.last = now
	return nil
}

// pingAfter returns the silence after which a side pings its peer: idle, but not so often that
// the peer would take the pings for a flood.
func pingAfter(idle time.Duration, other *wire.Settings) time.Duration {
	least := time.Duration(other.MinPing) * time.Millisecond
	return max(idle, least*5/4)
}

// minPing is the minimum time between two pings of a server. MinPing sets the minimum of a
// client.
const minPing = 5 * time.Second

// keepaliveOptions bound how long the peer of a connection may be silent or slow.
type keepaliveOptions struct {
	keepaliveIdle   time.Duration // silence before a ping
	keepaliveAnswer time.Duration // how long the answer may take
	writeStall      time.Duration
	readTimeout     time.Duration // 0: none
}

// connFault is the reason why keepAlive closed a connection.
type connFault int

const (
	noFault connFault = iota
	writeStalled
	frameSlow
	frameLate
	peerSilent
)

// keepAlive closes the connection if its peer is silent or too slow, and pings a peer that has
// been silent for long, or at the time doubt. It returns when it is due next.
func (c *conn) keepAlive(now mono.Time, o *keepaliveOptions, doubt mono.Time) (due mono.Time, fault connFault) {
	soon := now.Add(upkeep.Interval)
	if since := c.stalledSince(); since != 0 && now.Sub(since) > o.writeStall {
		c.fail(fmt.Errorf("a write made no progress for %v (anser.WriteStall)", o.writeStall))
		return soon, writeStalled
	}
	if c.progress.tooSlow(now, o.writeStall) {
		c.failWith(wire.Errorf(wire.Timeout, "a frame arrived with less than %d bytes a second for %v (anser.WriteStall)", minProgress, o.writeStall))
		return soon, frameSlow
	}
	if c.progress.late(now, o.readTimeout) {
		c.failWith(lateFrame(o.readTimeout))
		return soon, frameLate
	}
	due = c.transferDue(now, o)
	read, since := c.progress.lastRead.Load(), c.pinged.Load()
	if since != 0 && read > since {
		c.pinged.Store(0)
		since = 0
	}
	if since == 0 {
		if at := min(doubt, after(read, pingAfter(o.keepaliveIdle, &c.peer))); now < at {
			return min(due, at), noFault
		}
		since = now
		c.ping(now)
	}
	// A doubt makes the ping earlier, but not the end of the connection.
	late := max(after(since, o.keepaliveAnswer), after(after(read, o.keepaliveIdle), o.keepaliveAnswer))
	if now >= late {
		c.failWith(wire.Errorf(wire.Timeout, "no answer to a ping for %v (anser.Keepalive)", o.keepaliveAnswer))
		return soon, peerSilent
	}
	return min(due, late), noFault
}

// ping sends a ping to the peer.
func (c *conn) ping(now mono.Time) {
	c.asked = now
	c.pinged.Store(now)
	c.post(wire.AppendPing(nil, wire.TypePing, uint64(now.Nanoseconds())))
}

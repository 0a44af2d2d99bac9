package h2

import (
	"errors"
	"fmt"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// Keepalive in both directions: the server asks a silent client for a sign of life, and bounds how
// often a client asks the server. The rules for clients are those of gRPC (proposals A8 and A9).

// ErrSilent is the error of a connection whose client has not answered a PING.
var ErrSilent = errors.New("HTTP/2: the client is silent")

// keepalivePing is the PING that asks a silent client.
const keepalivePing = "anser..?"

// beginKeepalive starts to look after the client.
func (c *Conn) beginKeepalive() {
	if c.config.KeepaliveIdle == 0 {
		return
	}
	c.lastRead.Store(mono.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.keeper = time.AfterFunc(c.config.KeepaliveIdle, c.keepAlive)
	}
}

// keepAlive sends a PING after a silence, and ends the connection if nothing arrives after that. It
// is the function of the timer.
func (c *Conn) keepAlive() {
	idle, answer := c.config.KeepaliveIdle, c.config.KeepaliveAnswer
	now, read, silent := mono.Now(), c.lastRead.Load(), false
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	if read >= c.asked {
		c.asked = 0
	}
	due := read.Add(idle)
	switch {
	case c.asked == 0 && now < due:
	case c.asked == 0:
		c.asked, due = now, now.Add(answer)
		c.out = append(append(c.out, FrameHeader(8, FramePing, 0, 0)...), keepalivePing...)
	case c.writing || len(c.out) > 0: // the PING may wait behind an answer that the client takes slowly; Stall bounds that
		due = now.Add(answer)
	default:
		due = c.asked.Add(answer)
		silent = now >= due
	}
	if !silent {
		c.keeper.Reset(due.Sub(now))
	}
	c.mu.Unlock()
	if silent {
		c.end(fmt.Errorf("%w: no answer to a PING for %v (anser.Keepalive)", ErrSilent, answer))
		return
	}
	c.Flush()
}

// pingLimit judges the PING frames of a client.
type pingLimit struct {
	answered bool      // DATA or HEADERS were sent since the last PING
	last     mono.Time // time of the last PING; 0: there was none
	strikes  int       // PING frames that came too early, since an answer was sent
}

const (
	// maxStrikes is the number of PING frames that may come too early.
	maxStrikes = 2
	// minPingIdle is the time between two PING frames of a client that must not send any while it
	// has no stream.
	minPingIdle = 2 * time.Hour
	// tooManyPings tells a gRPC client to send fewer PING frames on its next connection.
	tooManyPings = "too_many_pings"
)

// note counts a PING, and reports whether the client keeps to the limit.
func (l *pingLimit) note(now mono.Time, least time.Duration) bool {
	last := l.last
	l.last = now
	switch {
	case l.answered:
		l.answered, l.strikes = false, 0
	case last != 0 && now.Sub(last) < least:
		l.strikes++
	}
	return l.strikes <= maxStrikes
}

// leastPingLocked returns the least time between two PING frames of the client.
func (c *Conn) leastPingLocked() time.Duration {
	if len(c.streams) == 0 && !c.config.PingWithoutStream {
		return max(minPingIdle, c.config.MinPing)
	}
	return c.config.MinPing
}

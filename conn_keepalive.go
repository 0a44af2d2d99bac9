package anser

import (
	"time"

	"github.com/anser-rpc/anser/wire"
)

// pingLimit counts the pings of the other side that come too fast. The zero value has seen none.
type pingLimit struct {
	last int64 // nanotime of the latest ping; 0: none since the last call or reply
	fast int   // so many in a row came too fast
}

const maxFastPings = 3

// note takes a ping, or a pong that nobody asked for, into account. least is the time that should
// lie between two of them.
func (p *pingLimit) note(now int64, least time.Duration) error {
	if p.last == 0 || now-p.last >= int64(least) {
		p.fast = 0
	} else if p.fast++; p.fast > maxFastPings {
		return wire.Errorf(wire.Flood, "pings more often than every %v", least)
	}
	p.last = now
	return nil
}

// pingAfter is after how much silence a side asks whether the other is there: after idle, but never as
// often as the other takes for a flood.
func pingAfter(idle time.Duration, other *wire.Settings) int64 {
	least := time.Duration(other.MinPing) * time.Millisecond
	return int64(max(idle, least*5/4))
}

// minPing is the least time between two pings of a server.
const minPing = 5 * time.Second

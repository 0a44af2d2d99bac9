package anser

import "github.com/anser-rpc/anser/wire"

// cancelLimit is a bucket that every CANCEL fills and time empties. It limits calls that are
// opened and cancelled at once, since their work is wasted. The zero value is empty.
type cancelLimit struct {
	level float64
	last  int64 // nanotime of the last note
}

const (
	// cancelRate is how many cancels per second a connection may have in the long run.
	cancelRate = 20_000

	// cancelBurst is how many cancels a connection may have at once beyond its number of calls:
	// the cancels of a client that keeps to cancelPace arrive all at once after this side was
	// stopped for some seconds.
	cancelBurst = 100_000
)

// note counts a CANCEL.
func (l *cancelLimit) note(now int64, maxCalls uint64) error {
	if now > l.last {
		l.level = max(0, l.level-float64(now-l.last)/1e9*cancelRate)
		l.last = now
	}
	if l.level++; l.level > float64(maxCalls)+cancelBurst {
		return wire.Errorf(wire.Flood, "more than %d cancels a second", cancelRate)
	}
	return nil
}

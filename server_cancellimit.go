package anser

import "github.com/anser-rpc/anser/wire"

// cancelLimit is a bucket that every CANCEL fills and time empties. It limits calls that are
// opened and cancelled at once, since their work is wasted. The zero value is empty.
type cancelLimit struct {
	level float64
	last  int64 // nanotime of the last note
}

const (
	// cancelRate is how many cancels a second a connection may have for long.
	cancelRate = 20_000

	// cancelBurst is how many more than its calls at once it may have: what a client that keeps to
	// cancelPace sends while this side is stopped for some seconds arrives all at once.
	cancelBurst = 100_000
)

// note takes a CANCEL into account.
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

package anser

import "github.com/anser-rpc/anser/wire"

// cancelLimit is a bucket that every CANCEL fills and time empties. Calls that are opened and cancelled
// at once make work that nobody waits for. The zero value is empty.
type cancelLimit struct {
	level float64
	last  int64 // nanotime of the last note
}

// cancelRate is how many cancels a second a connection may have for long, and how many more than all
// of its calls at once.
const cancelRate = 10_000

// note takes a CANCEL into account.
func (l *cancelLimit) note(now int64, maxCalls uint64) error {
	if now > l.last {
		l.level = max(0, l.level-float64(now-l.last)/1e9*cancelRate)
		l.last = now
	}
	if l.level++; l.level > float64(maxCalls)+cancelRate {
		return wire.Errorf(wire.Flood, "more than %d cancels a second", cancelRate)
	}
	return nil
}

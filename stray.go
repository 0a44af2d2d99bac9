package anser

import (
	"errors"

	"github.com/anser-rpc/anser/wire"
)

// strays looks after DATA, END and WINDOW frames on a connection that offers no streams. A peer may
// have sent some before it learned that, so they are ignored as long as it keeps to the credit and
// does not waste the reader's time.
type strays struct {
	wasted int    // frames that no good peer sends, more than a few of
	used   uint64 // bytes of DATA so far; none of the credit is returned
	given  uint64 // credit that the other side has returned
}

const maxStrays = 100

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

// note takes a frame into account. opened says whether its id has ever been opened. An error is one
// of the connection.
func (s *strays) note(h wire.Header, body []byte, opened bool, own, other *wire.Settings) error {
	if h.ID != 0 && !opened {
		return s.waste(h)
	}
	switch h.Type {
	case wire.TypeData:
		_, _, payload, err := wire.ParseData(body)
		if err != nil {
			return err
		}
		if s.used += uint64(h.Length); s.used > own.ConnWindow {
			return wire.Errorf(wire.FlowControl, "%d bytes of DATA on a connection with a credit of %d", s.used, own.ConnWindow)
		}
		if len(payload) == 0 {
			return s.waste(h)
		}
	case wire.TypeEnd:
		_, err := wire.ParseEnd(h.Flags, body)
		return err
	case wire.TypeWindow:
		credit, err := wire.ParseWindow(h.ID, body)
		var broken *wire.Error
		if errors.As(err, &broken) {
			return broken
		}
		if h.ID != 0 {
			return nil
		}
		if s.given += uint64(credit); s.given+other.ConnWindow > wire.MaxWindow {
			return wire.Errorf(wire.FlowControl, "the credit of the connection is over %d", uint32(wire.MaxWindow))
		}
	}
	return nil
}

func (s *strays) waste(h wire.Header) error {
	if s.wasted++; s.wasted > maxStrays {
		return wire.Errorf(wire.Flood, "more than %d frames that belong to no stream, the last one a %s", maxStrays, h.Type)
	}
	return nil
}

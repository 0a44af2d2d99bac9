package cancelpace

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

const (
	// Rate is how many CANCELs per second a client may send in the long run.
	Rate = 20_000

	// burst is how many CANCELs a client may send at once beyond its number of calls: those of a
	// client that keeps to its pace arrive all at once after the server was stopped for some
	// seconds.
	burst = 100_000
)

// Limit limits the CANCELs of a connection at the server, and with them the calls that are opened
// and cancelled at once, whose work is wasted. The zero value has counted none.
type Limit struct {
	bucket
	work uint // of CANCELs since the last pause
}

// Allow counts a CANCEL, and reports whether the client keeps to the limit. maxCalls is the number
// of calls that it may have open.
func (l *Limit) Allow(now mono.Time, maxCalls uint64) bool {
	l.drain(now, Rate)
	l.level++
	return l.level <= float64(maxCalls)+burst
}

// Breather is how long the reader of the connection pauses when Breathes says so.
const Breather = time.Millisecond

const (
	// calm is how many CANCELs a client may send at once without a pause.
	calm = 1_000
	// perBreather is how many CANCELs follow each other between two pauses. One that ends a running
	// call counts as many: it makes a goroutine ready to run, and the calls of other connections
	// wait behind all of those.
	perBreather = 1024
	perCall     = 8
)

// Breathes counts a CANCEL that was allowed, and reports whether the reader of the connection
// should pause now, so that calls of other connections get their turn. A client that keeps to its
// pace is not affected.
func (l *Limit) Breathes(running bool) bool {
	switch {
	case l.level <= calm:
		l.work = 0
	case running:
		l.work += perCall
	default:
		l.work++
	}
	if l.work < perBreather {
		return false
	}
	l.work = 0
	return true
}

// bucket is filled by CANCELs and emptied by time.
type bucket struct {
	level float64
	last  mono.Time // of the last update
}

func (b *bucket) drain(now mono.Time, rate float64) {
	if now > b.last {
		b.level = max(0, b.level-now.Sub(b.last).Seconds()*rate)
		b.last = now
	}
}

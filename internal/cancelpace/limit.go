package cancelpace

import "github.com/anser-rpc/anser/internal/mono"

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
type Limit struct{ bucket }

// Allow counts a CANCEL, and reports whether the client keeps to the limit. maxCalls is the number
// of calls that it may have open.
func (l *Limit) Allow(now mono.Time, maxCalls uint64) bool {
	l.drain(now, Rate)
	l.level++
	return l.level <= float64(maxCalls)+burst
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

package route

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

// limiter bounds the calls of one client by a rule: the rate per second, and the number in flight.
// The rate limit is the generic cell rate algorithm of ATM: its only state is the time at which
// the next call would be due if calls were evenly spaced.
type limiter struct {
	name      string
	start     time.Time
	every     int64 // nanoseconds between two calls; 0 means no limit
	ahead     int64 // how far calls may be ahead of that schedule
	most      int64 // calls in flight; 0 means no limit
	due       atomic.Int64
	inFlight  atomic.Int64
	perSecond float64
}

func newLimiter(name string, r *Rate, most int) *limiter {
	l := &limiter{name: name, start: time.Now(), most: int64(most)}
	if r != nil {
		burst := r.Burst
		if burst == 0 {
			burst = max(int(min(r.PerSecond, math.MaxInt32)), 1)
		}
		l.perSecond = r.PerSecond
		l.every = max(int64(float64(time.Second)/r.PerSecond), 1)
		l.ahead = min(int64(burst-1), math.MaxInt64/4/l.every) * l.every
	}
	return l
}

// enter counts the start of a call, or returns why it is refused. Each nil must be followed by
// leave.
func (l *limiter) enter() error {
	if n := l.inFlight.Add(1); l.most > 0 && n > l.most {
		l.inFlight.Add(-1)
		return refusal(anser.ResourceExhausted, "the rule %s allows %d concurrent calls", l.name, l.most)
	}
	if l.every > 0 && !l.take(int64(time.Since(l.start))) {
		l.inFlight.Add(-1)
		return refusal(anser.ResourceExhausted, "the rule %s allows %v calls per second", l.name, l.perSecond)
	}
	return nil
}

func (l *limiter) leave() { l.inFlight.Add(-1) }

// take reports whether a call is allowed now.
func (l *limiter) take(now int64) bool {
	for {
		due := l.due.Load()
		if due-now > l.ahead {
			return false
		}
		if l.due.CompareAndSwap(due, max(due, now)+l.every) {
			return true
		}
	}
}

// refusal is the error of a call that was not sent because of a rule.
func refusal(code anser.Code, format string, args ...any) *anser.Error {
	e := anser.Errorf(code, format, args...)
	e.Outcome = anser.NotSent
	return e
}

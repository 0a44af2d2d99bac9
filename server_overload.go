package anser

import (
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/limiter"
	"github.com/anser-rpc/anser/internal/mono"
)

// ServerHandleOption configures a [Server], or one of its methods.
type ServerHandleOption interface {
	ServerOption
	HandleOption
}

type serverHandleOption struct {
	server func(*serverOptions)
	handle func(*handleOptions)
}

func (o serverHandleOption) applyServer(s *serverOptions) { o.server(s) }
func (o serverHandleOption) applyHandle(h *handleOptions) { o.handle(h) }

// limitBounds are the bounds of an adaptive limit; 0 is the default.
type limitBounds struct{ least, most int }

// MaxQueueTime sets how long a call may wait on the server before it runs: for the reader
// goroutine of its connection, for a processor, or for its turn under an [AdaptiveLimit]. A call
// that has waited longer is refused with ResourceExhausted and does not run. Calls of priority
// Low are refused after half of that time and Sheddable ones after a quarter, unless they wait
// for their turn: there the higher priority goes first. Without this option calls wait until
// their deadline, under an AdaptiveLimit 100 ms.
//
// Time that a request spends in the socket counts on Linux, for TCP and unix sockets without TLS.
//
// Given to a method, it replaces the server's limit for that method. It must be more than 0.
func MaxQueueTime(d time.Duration) ServerHandleOption {
	return serverHandleOption{
		func(o *serverOptions) {
			if o.wants(d > 0, "anser.MaxQueueTime(%v): want a time above 0", d) {
				o.queueTime = d
			}
		},
		func(o *handleOptions) {
			if o.wants(d > 0, "anser.MaxQueueTime(%v): want a time above 0", d) {
				o.queueTime = d
			}
		},
	}
}

// AdaptiveLimit bounds how many calls run at once by a limit that follows the capacity of the
// server: it falls while calls take longer because others run, and grows while they do not. Some
// more calls wait for their turn in a queue, ordered by priority. Calls that do not fit are
// refused with ResourceExhausted before they are decoded. The limit stays between least and most;
// 0 means the defaults, GOMAXPROCS and 10,000.
//
// Given to a server, one limit applies to all methods together; a method with the option has a
// limit of its own. Each call is handed to a goroutine of its own. Methods with [Inline] and
// streams are exempt, since they do not queue. See docs/governance/overload.md.
func AdaptiveLimit(least, most int) ServerHandleOption {
	ok := least >= 0 && (most == 0 || most >= max(least, 1))
	const want = "anser.AdaptiveLimit(%d, %d): want numbers of at least 0, the second one not below the first, or 0 for the default"
	return serverHandleOption{
		func(o *serverOptions) {
			if o.wants(ok, want, least, most) {
				o.adaptive = &limitBounds{least, most}
			}
		},
		func(o *handleOptions) {
			if o.wants(ok, want, least, most) {
				o.adaptive = &limitBounds{least, most}
			}
		},
	}
}

// methodLimits are the limits of a method whose calls are limited. Other methods have none.
type methodLimits struct {
	limit     int64 // bound of running and waiting calls, 0: no limit
	inFlight  atomic.Int64
	queueTime time.Duration // 0: no bound
	queue     *waitQueue    // nil: none

	over *Error // the refusal at limit
	late *Error // the refusal after queueTime
	shed [Critical + 1]atomic.Int64

	class limiter.Class // what queue has learned of the method
}

// The limits that a call counts for, in the upper bits of callContext.priority, so that the
// context does not grow.
const (
	priorityBits = 0x03
	hasQuota     = 0x80 // counted in methodLimits.inFlight
	hasPlace     = 0x40 // in methodLimits.queue
)

// level is the priority of the call.
func (c *callContext) level() Priority { return Priority(c.priority & priorityBits) }

// newMethodLimits returns the limits of a method, or nil if it has none.
func (s *Server) newMethodLimits(m *method, o *handleOptions) *methodLimits {
	if m.builtin {
		return nil
	}
	g := &methodLimits{limit: int64(o.maxInFlight), queueTime: o.queueTime}
	if g.queueTime == 0 {
		g.queueTime = s.o.queueTime
	}
	wait := g.queueTime
	switch {
	case o.adaptive != nil:
		g.queue = newWaitQueue(m.name, o.adaptive, wait)
	case m.converse == nil && m.mode != runInline:
		g.queue = s.gate
	}
	if s.gate != nil && g.queueTime == 0 {
		g.queueTime = limiter.DefaultMaxWait
	}
	if g.queue != nil {
		wait = g.queue.MaxWait()
		g.queueTime = wait
		g.queue.AddClass(&g.class)
		m.mode = runConcurrent
	}
	if g.limit == 0 && g.queueTime == 0 {
		return nil
	}
	if g.queueTime != 0 {
		s.queues.Store(true)
	}
	g.over = over(limitInFlight, "the method %s is at its limit of %d calls in flight (anser.MaxInFlight)", m.name, g.limit)
	g.late = over(limitQueueTime, "the call waited longer than %v before it could run (anser.MaxQueueTime)", wait)
	return g
}

// admit returns what a call that has waited for this many nanoseconds takes, or why it cannot
// run. A refusal is cheap, so that a server can refuse many more calls than it can run.
func (g *methodLimits) admit(p Priority, waited time.Duration) (taken uint8, refused *Error) {
	switch {
	case g.tooLate(p, waited):
		refused = g.late
	case g.queue != nil && g.queue.Crowded(int(p)):
		refused = g.queue.full.Load()
	case g.limit == 0:
		return 0, nil
	case g.inFlight.Add(1) > g.limit:
		g.inFlight.Add(-1)
		refused = g.over
	default:
		return hasQuota, nil
	}
	g.shed[p].Add(1)
	return 0, refused
}

// tooLate reports whether a call has waited for too long. It ignores the adaptive limit's queue.
func (g *methodLimits) tooLate(p Priority, waited time.Duration) bool {
	if g.queueTime == 0 {
		return false
	}
	bound := g.queueTime
	if p < Normal {
		bound >>= Normal - p
	}
	return waited > bound
}

// late returns why a call that a worker is about to run cannot run, or nil.
func (j *job) late(now mono.Time) *Error {
	if j.refused != nil {
		return j.refused
	}
	if j.ctx.expired(now) {
		return errExpired
	}
	if j.ctx.conn.auth != nil && j.ctx.isOver() { // the client may no longer make the call
		return errGone
	}
	g := j.ctx.method.limits
	if g == nil {
		return nil
	}
	p := j.ctx.level()
	if g.queue != nil {
		p = Critical // the queue has ordered the calls by priority
		if j.ctx.isOver() {
			return errGone
		}
	}
	if g.tooLate(p, now.Sub(j.run.arrived)) {
		g.shed[j.ctx.level()].Add(1)
		return g.late
	}
	return nil
}

var errGone = refusal(Canceled, "the caller cancelled the call, its connection was lost, or its client may not have it any more, before it could run")

// releaseLimits releases what the call has taken. It is called once for what was taken.
func (c *callContext) releaseLimits() {
	g := c.method.limits
	if c.priority&hasQuota != 0 {
		g.inFlight.Add(-1)
	}
	if c.priority&hasPlace != 0 {
		g.queue.Release()
	}
}

// nextWaiting returns the job that a worker runs after this call, because the call had a place in
// the adaptive limit's queue, or nil.
func (c *callContext) nextWaiting() *job {
	if c.priority&hasPlace == 0 {
		return nil
	}
	return c.method.limits.queue.nextJob()
}

// LimitStats describes the limits of a method, or the limits that a server has for its methods
// together.
type LimitStats struct {
	// Limit is how many calls may run at once now under the [AdaptiveLimit], or 0 without one.
	Limit int64
	// Running and Waiting are the numbers of calls that have a place under it, and that wait for
	// one.
	Running, Waiting int64
	// Room is how many may wait now.
	Room int64
	// Usual is how long a call takes when no call waits, as the limit has learned it. It is 0 for
	// a server and where it is not known.
	Usual time.Duration
	// Shed counts the calls refused at [MaxInFlight] of the method, [MaxQueueTime] and
	// AdaptiveLimit, by priority.
	Shed [Critical + 1]int64
}

// stats returns the stats of a method. The stats of a queue that it shares with other methods are
// part of the server's stats.
func (g *methodLimits) stats() LimitStats {
	if g == nil {
		return LimitStats{}
	}
	var out LimitStats
	if gt := g.queue; gt != nil {
		if gt.owner != "" {
			out = gt.stats()
		}
		out.Usual = gt.Usual(&g.class)
	}
	for p := range g.shed {
		out.Shed[p] = g.shed[p].Load()
	}
	return out
}

package anser

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
)

// BackupShare sets the share of a method's calls with the mode [Backup] that may have a second
// attempt; the default is 0.05. Second attempts also use the [RetryBudget].
func BackupShare(share float64) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(share >= 0 && share <= 1, "anser.BackupShare(%v): want 0 to 1", share) {
			o.backupShare = share
		}
	})
}

// BackupAfter sets how long a call with the mode [Backup] waits before its second attempt. The
// default, 0, is the time within which 95 % of the method's recent calls were answered. It is
// unknown until the client has seen 128 calls, and until then calls have no second attempt.
func BackupAfter(d time.Duration) DialCallOption {
	return dialCallOption(func(o *callOptions) {
		if o.wants(d >= 0, "anser.BackupAfter(%v): want at least 0", d) {
			o.backupAfter = d
		}
	})
}

// BackupStats has the counters of the second attempts of a method's calls with the mode [Backup].
type BackupStats struct {
	Method string
	Calls  int64         // with the mode
	Sent   int64         // second attempts
	Won    int64         // of those, ones whose reply came first
	After  time.Duration // within which 95 % of the calls were answered lately; 0: not known yet
}

// hedge is the client's state for a method's calls with the mode Backup. No lock is held while
// calls wait.
type hedge struct {
	calls, sent, won atomic.Int64
	credit           atomic.Int64 // second attempts that calls have paid for, in parts of creditUnit
	times            latencies
}

const (
	creditUnit = 1 << 20
	maxCredit  = 10 * creditUnit // so that a quiet hour does not pay for a burst
)

// hedging returns the hedge of the method, made at its first call with the mode.
func (m *clientMethod) hedging() *hedge {
	if h := m.hedge.Load(); h != nil {
		return h
	}
	m.hedge.CompareAndSwap(nil, new(hedge))
	return m.hedge.Load()
}

// count enters a call.
func (h *hedge) count(share float64) {
	h.calls.Add(1)
	if h.credit.Load() < maxCredit {
		h.credit.Add(int64(share * creditUnit))
	}
}

// pay takes a second attempt from the credit, if there is enough.
func (h *hedge) pay() bool {
	if h.credit.Add(-creditUnit) >= 0 {
		return true
	}
	h.credit.Add(creditUnit)
	return false
}

// backup makes the first attempt, and a second one at the same time if the first one is late. It
// returns the attempt that answered, or the one that failed last; the other one is noted if it
// failed. The call that it returns is k, or replaces it.
//
// All of it runs on the caller's goroutine, so that a call whose reply comes in time costs only a
// timer and a context more than another call.
func (c *Client) backup(ctx context.Context, k *call, a *attempts) (*call, *endpoint, *Error) {
	h := a.m.hedging()
	h.count(c.o.backupShare)
	e := c.pick(k, a.m)
	if e == nil {
		return k, nil, nil
	}
	after := a.o.backupAfter
	if after == 0 {
		after = h.times.high()
	}
	attentive, cancel := context.WithCancel(ctx) // has a Done channel, so that this goroutine reads no replies for other calls
	defer cancel()
	conn, fault := k.start(attentive, e, a.m)
	if fault != nil {
		return k, e, fault
	}
	conn.ensureReader()
	if after == 0 || !a.m.mayRunTwice(a.o) || parentRetried(ctx) {
		return c.awaitSingle(attentive, h, conn, e, k, a)
	}
	timer := time.NewTimer(after - mono.Since(k.began))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.done:
		k.done <- struct{}{} // for alone
		return c.awaitSingle(attentive, h, conn, e, k, a)
	case <-attentive.Done():
		return c.awaitSingle(attentive, h, conn, e, k, a)
	}
	first := hedgeAttempt{e, conn, k}
	second, ok := c.startHedge(attentive, h, first, a)
	if !ok {
		return c.awaitSingle(attentive, h, conn, e, k, a)
	}
	return c.awaitEither(attentive, h, first, second, a)
}

// awaitSingle waits for an attempt while it is the only one.
func (c *Client) awaitSingle(ctx context.Context, h *hedge, conn *callerHalf, e *endpoint, k *call, a *attempts) (*call, *endpoint, *Error) {
	return k, e, a.settle(h, hedgeAttempt{e, conn, k}, conn.wait(ctx, k))
}

// hedgeAttempt is an attempt in flight.
type hedgeAttempt struct {
	e    *endpoint
	conn *callerHalf
	k    *call
}

// settle ends an attempt that answered or failed, and decodes its reply. With h, its time is
// recorded.
func (a *attempts) settle(h *hedge, x hedgeAttempt, fault *Error) *Error {
	fault = x.k.settle(x.e, x.conn, a.m, fault)
	if h != nil && (fault == nil || fault.Outcome == Executed || fault.Code == DeadlineExceeded) {
		h.times.note(mono.Since(x.k.began))
	}
	if fault == nil {
		fault = x.k.decode(x.e, a.codec, a.out)
	}
	return fault
}

// startHedge starts another attempt at another connected instance, if there is one, and if both
// the method's share and the client's budget allow it.
func (c *Client) startHedge(ctx context.Context, h *hedge, first hedgeAttempt, a *attempts) (hedgeAttempt, bool) {
	v := c.cluster.View().ForCall(&a.m.health, first.k.route)
	if v == nil || v.Usable < 2 {
		return hedgeAttempt{}, false
	}
	k := c.pool.getCall()
	if !first.conn.ifOpen(first.k, func() { k.cloneForAttempt(first.k, 1) }) {
		c.pool.putCall(k) // its reply has come
		return hedgeAttempt{}, false
	}
	k.pick.Tried = []*balance.Endpoint{first.e.Endpoint}
	e := v.Pick(&k.pick)
	k.pick.Tried, k.pick.Reason = nil, balance.PickedForBackup
	if e == nil || e == first.e || !e.Host.Connected() || !h.pay() {
		c.pool.putCall(k)
		return hedgeAttempt{}, false
	}
	if !c.budget.Withdraw(mono.Now()) {
		h.credit.Add(creditUnit)
		c.pool.putCall(k)
		return hedgeAttempt{}, false
	}
	k.shrinkTimeout(ctx)
	k.atOnce = true // while this attempt waited for room, the first reply would not be noticed
	conn, fault := k.start(ctx, e, a.m)
	k.atOnce = false
	if fault != nil {
		c.pool.putCall(k)
		return hedgeAttempt{}, false
	}
	conn.ensureReader()
	h.sent.Add(1)
	if a.o.attempts <= 2 {
		first.conn.ifOpen(first.k, func() { first.k.mover = nil }) // there is no attempt left
	}
	return hedgeAttempt{e, conn, k}, true
}

// awaitEither waits for two attempts.
func (c *Client) awaitEither(ctx context.Context, h *hedge, first, second hedgeAttempt, a *attempts) (*call, *endpoint, *Error) {
	select {
	case <-first.k.done:
		fault := a.settle(h, first, first.k.failed)
		if fault == nil || fault.Outcome == Executed || fault.Phase == PhaseDecode {
			a.drop(c.pool, second, false)
			return first.k, first.e, fault
		}
		a.note(first.k, first.e, fault)
		c.pool.putCall(first.k)
		fault = a.settle(nil, second, second.conn.wait(ctx, second.k))
		if fault == nil {
			h.won.Add(1)
		}
		return second.k, second.e, fault
	case <-second.k.done:
		fault := a.settle(nil, second, second.k.failed)
		if fault == nil || fault.Outcome == Executed || fault.Phase == PhaseDecode {
			if fault == nil {
				h.won.Add(1)
			}
			h.times.note(mono.Since(first.k.began)) // at least; that is beyond the time to wait anyway
			a.drop(c.pool, first, true)
			return second.k, second.e, fault
		}
		a.note(second.k, second.e, fault)
		c.pool.putCall(second.k)
		return c.awaitSingle(ctx, h, first.conn, first.e, first.k, a)
	case <-ctx.Done():
		a.drop(c.pool, second, false)
		return c.awaitSingle(ctx, h, first.conn, first.e, first.k, a)
	}
}

// drop cancels an attempt whose reply is no longer needed. The balancer records that a slower
// attempt took at least as long as it did: otherwise an instance would seem fast because its slow
// replies are never seen.
func (a *attempts) drop(p *pool, x hedgeAttempt, outrun bool) {
	if taken, _ := x.conn.cancel(x.k, false); !taken {
		<-x.k.done // its reply is being delivered
	}
	if outrun {
		now := mono.Now()
		x.e.End(now.Nanoseconds(), now.Sub(x.k.began))
	} else {
		x.e.Abort()
	}
	if x.k.observed != nil {
		x.k.observeReply(x.e, a.m, failure(Canceled, OutcomeUnknown, PhaseWait, context.Canceled, "another attempt was answered first"))
	}
	p.putCall(x.k)
}

// backupStats appends the counters of the method's second attempts, if it was called with the
// mode.
func (m *clientMethod) backupStats(list []BackupStats) []BackupStats {
	h := m.hedge.Load()
	if h == nil {
		return list
	}
	return append(list, BackupStats{m.name, h.calls.Load(), h.sent.Load(), h.won.Load(), h.times.high()})
}

func sortBackups(list []BackupStats) {
	slices.SortFunc(list, func(a, b BackupStats) int { return strings.Compare(a.Method, b.Method) })
}

// latencies learns the time within which 95 % of calls are answered. A call costs one atomic
// addition, to a histogram whose steps are an eighth of a power of two; one call in latencyPeriod
// sums it up.
type latencies struct {
	counts [latencySteps]atomic.Uint32
	noted  atomic.Uint32
	p95    atomic.Int64 // nanoseconds, 0: not known
	mu     sync.Mutex   // held by the goroutine that sums up; others skip it
}

const (
	latencySteps  = 256
	latencyPeriod = 64   // calls between two looks
	latencyLeast  = 128  // calls before anything is known
	latencyMemory = 4096 // calls after which older ones count half
	latencyUnit   = time.Microsecond
)

// high returns the time, or 0 if it is not known yet.
func (l *latencies) high() time.Duration { return time.Duration(l.p95.Load()) }

// note enters the time of one call.
func (l *latencies) note(d time.Duration) {
	l.counts[latencyStep(d)].Add(1)
	if l.noted.Add(1)%latencyPeriod == 0 && l.mu.TryLock() {
		l.sumUpLocked()
		l.mu.Unlock()
	}
}

func (l *latencies) sumUpLocked() {
	var counts [latencySteps]uint32
	total := uint32(0)
	for i := range l.counts {
		counts[i] = l.counts[i].Load()
		total += counts[i]
	}
	if total < latencyLeast {
		return
	}
	below := uint32(0)
	for i, n := range counts {
		if below += n; float64(below) >= 0.95*float64(total) {
			l.p95.Store(int64(latencyBound(i)))
			break
		}
	}
	if total >= latencyMemory {
		for i, n := range counts {
			l.counts[i].Add(-(n - n/2)) // calls that were noted in the meantime stay
		}
	}
}

// latencyStep returns the step of a time: eight of them for each power of two of microseconds.
func latencyStep(d time.Duration) int {
	v := uint64(max(d, 0) / latencyUnit)
	shift := 0
	for v>>shift > 15 {
		shift++
	}
	return min(8*shift+int(v>>shift), latencySteps-1)
}

// latencyBound returns the upper bound of a step.
func latencyBound(step int) time.Duration {
	if step < 16 {
		return time.Duration(step+1) * latencyUnit
	}
	shift := step/8 - 1
	return time.Duration((step%8+9)<<shift) * latencyUnit
}

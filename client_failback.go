package anser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/loglimit"
	"github.com/anser-rpc/anser/internal/mono"
)

// ErrQueued reports that a call with the mode [Failback] failed and is retried in the background.
// The error of the first attempt is in the same chain.
var ErrQueued = errors.New("queued to be tried again later")

// ErrQueueFull reports that a call with the mode [Failback] failed, and that too many such calls
// are waiting already. The error of the first attempt is in the same chain.
var ErrQueueFull = errors.New("too many calls wait to be tried again")

// FailbackLimits bounds the calls with the mode [Failback] that wait for a retry. A field that is
// 0 has its default.
type FailbackLimits struct {
	Calls int           // waiting calls, including the ones being retried; the default is 1,000
	Bytes int           // of their encoded requests; the default is 16 MiB
	Age   time.Duration // after which a call is given up; the default is 10 minutes
	Drain time.Duration // time that [Client.Close] gives them to succeed; the default is 2 s, below 0 is none
}

var defaultFailbackLimits = FailbackLimits{Calls: 1000, Bytes: 16 << 20, Age: 10 * time.Minute, Drain: 2 * time.Second}

// FailbackQueue sets the limits for calls with the mode [Failback].
func FailbackQueue(l FailbackLimits) DialOption {
	return dialOption(func(o *dialOptions) {
		if !o.wants(min(l.Calls, l.Bytes) >= 0 && l.Age >= 0, "anser.FailbackQueue(%+v): want numbers of at least 0, and a Drain below 0 for none", l) {
			return
		}
		d := defaultFailbackLimits
		o.failback = FailbackLimits{
			Calls: cmp.Or(l.Calls, d.Calls), Bytes: cmp.Or(l.Bytes, d.Bytes), Age: cmp.Or(l.Age, d.Age), Drain: cmp.Or(l.Drain, d.Drain),
		}
	})
}

// FailbackStats has the counters of a client's calls with the mode [Failback]. Waiting and Bytes
// are current values, the others only grow.
type FailbackStats struct {
	Waiting int   // calls, including the ones being retried
	Bytes   int   // in their encoded requests
	Queued  int64 // calls that ever waited
	Done    int64 // of those, calls that succeeded later
	GivenUp int64 // of those, calls that did not
	Full    int64 // calls that did not wait because of the limits
}

// failbacks are the calls of a client that wait to be tried again.
type failbacks struct {
	c       *Client
	limits  FailbackLimits
	givenUp loglimit.Seldom
	wake    chan struct{} // has room for one value; tells run that waiting or closing changed

	mu      sync.Mutex // guards the fields below
	waiting []*queued
	trying  int
	runs    bool
	closing bool
	empty   chan struct{} // closed when nothing is left after closing; nil until drain
	numbers FailbackStats
}

// queued is a call that waits. It belongs to the queue, or to the goroutine that tries it.
type queued struct {
	ctx    context.Context // carries values, and has no end
	method *clientMethod
	in     any // a copy
	out    any // nil for a oneway message
	o      callOptions
	bytes  int
	since  mono.Time
	due    mono.Time
	tries  int    // in the background
	last   *Error // of the last try
}

const (
	firstFailback = time.Second // before the first try in the background; each one after it waits twice as long
	lastFailback  = time.Minute
	failbackTries = 8 // at the same time

	closingFailback = 100 * time.Millisecond // between two tries of a call while Close waits
)

func (q *failbacks) init(c *Client) {
	q.c, q.limits, q.wake = c, c.o.failback, make(chan struct{}, 1)
}

func (q *failbacks) stats() FailbackStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.numbers
	s.Waiting = len(q.waiting) + q.trying
	return s
}

// failback makes one attempt, and queues the call if the failure allows a retry. o has the mode
// Failfast.
func (c *Client) failback(ctx context.Context, name string, in, out any, o *callOptions) error {
	err := c.callInside(ctx, name, in, out, o, nil)
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	m, bad := c.method(name)
	if bad != nil || !mayWait(e, m, o) {
		return err
	}
	why := ErrQueued
	if fault := c.later.add(ctx, m, in, out, o, e); fault != nil {
		why = fault
	}
	result := *e
	result.Message = fmt.Sprintf("%v: %s", why, e.Message)
	result.cause = fmt.Errorf("%w: %w", why, err)
	return &result
}

// mayWait reports whether a call that failed with err may be sent again later. A call that its
// caller gave up, or that would fail again, may not. A call with a key that may have run may not
// either: only its instance knows the key, and it may be gone by then.
func mayWait(err *Error, m *clientMethod, o *callOptions) bool {
	switch {
	case err.RetryAfter < 0, err.Code == Canceled && err.Outcome != Executed, err.Phase == PhaseEncode, err.Phase == PhaseDecode:
		return false
	}
	switch err.Outcome {
	case NotSent:
		return err.Code == Unavailable || err.Code == DeadlineExceeded
	case Refused:
		return err.Code == Unavailable || err.Code == DeadlineExceeded || err.Code == ResourceExhausted
	case Executed:
		return m.mayRunTwice(o) && slices.Contains(o.retryOn, err.Code)
	}
	return m.mayRunTwice(o)
}

// add queues a call. Its request is copied, as the caller may change it after add.
func (q *failbacks) add(ctx context.Context, m *clientMethod, in, out any, o *callOptions, last *Error) error {
	it := &queued{ctx: context.WithoutCancel(ctx), method: m, o: *o, since: mono.Now(), last: last}
	it.o.inv, it.o.trailer = nil, nil
	it.o.earlier = 1 // the server of a later attempt should know that it is a retry
	if it.o.timeout <= 0 {
		it.o.timeout = 10 * time.Second
	}
	if err := it.keep(q.c, in, out); err != nil {
		return fmt.Errorf("the request of type %T cannot be kept to be tried again later: %w", in, err)
	}
	it.due = it.since.Add(jitter(firstFailback))
	q.mu.Lock()
	defer q.mu.Unlock()
	switch n := len(q.waiting) + q.trying; {
	case q.closing:
		return errors.New("the client is closed")
	case n >= q.limits.Calls:
		q.numbers.Full++
		return fmt.Errorf("%w: there are %d (anser.FailbackQueue)", ErrQueueFull, n)
	case q.numbers.Bytes+it.bytes > q.limits.Bytes:
		q.numbers.Full++
		return fmt.Errorf("%w: they have %d bytes, this one %d, and %d are allowed (anser.FailbackQueue)", ErrQueueFull, q.numbers.Bytes, it.bytes, q.limits.Bytes)
	}
	q.numbers.Queued++
	q.numbers.Bytes += it.bytes
	q.waiting = append(q.waiting, it)
	if !q.runs {
		q.runs = true
		q.c.wg.Go(q.run) // not after Close has begun: Close waits
	}
	wake(q.wake)
	return nil
}

// keep copies the request by encoding it, and makes a place for the reply.
func (it *queued) keep(c *Client, in, out any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the codec panicked: %v", p)
		}
	}()
	if it.o.codec == nil {
		it.o.codec = c.codecFor(in, out)
	}
	cd := it.o.codec
	if it.in, err = another(in); err != nil {
		return err
	}
	bytes, err := cd.Append(nil, in)
	if err != nil {
		return err
	}
	if err := cd.Unmarshal(bytes, it.in); err != nil {
		return err
	}
	it.bytes = len(bytes)
	if out != nil {
		it.out, err = another(out)
	}
	return err
}

// jitter returns a time around d.
func jitter(d time.Duration) time.Duration { return d/2 + time.Duration(rand.Int64N(int64(d))) }

// run tries the due calls, until none is left or the client is closed.
func (q *failbacks) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, left := q.tryDue(mono.Now())
		if !left {
			return
		}
		timer.Reset(mono.Until(next))
		select {
		case <-q.wake:
		case <-timer.C:
		case <-q.c.ctx.Done():
			q.abandon()
			return
		}
	}
}

// tryDue starts tries, and returns when the next one is due. left is false if no call waits.
func (q *failbacks) tryDue(now mono.Time) (next mono.Time, left bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	next = now.Add(lastFailback)
	rest := q.waiting[:0]
	for _, it := range q.waiting {
		if q.trying < failbackTries && it.due <= now {
			q.trying++
			q.c.wg.Go(func() { q.try(it) })
			continue
		}
		if q.trying < failbackTries {
			next = min(next, it.due)
		}
		rest = append(rest, it)
	}
	clear(q.waiting[len(rest):])
	q.waiting = rest
	if len(rest)+q.trying > 0 {
		return next, true
	}
	q.runs = false
	if q.empty != nil {
		close(q.empty)
		q.empty = nil
	}
	return 0, false
}

// try makes the call once more.
func (q *failbacks) try(it *queued) {
	if it.last.Outcome != NotSent && !q.c.budget.Withdraw(mono.Now()) {
		q.ended(it, it.last, false)
		return
	}
	q.c.cluster.RedialNow()
	ctx, cancel := context.WithCancel(it.ctx)
	defer cancel()
	defer context.AfterFunc(q.c.ctx, cancel)()
	o := it.o
	err := q.c.callInside(ctx, it.method.name, it.in, it.out, &o, nil)
	it.tries++
	if err == nil {
		q.ended(it, nil, true)
		return
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = failure(CodeOf(err), OutcomeOf(err), PhaseNone, err, "%v", err)
	}
	q.ended(it, e, ok && mayWait(e, it.method, &o))
}

// ended takes a call back after a try that failed with err, or that the budget did not allow: then
// again is false and err is the last error.
func (q *failbacks) ended(it *queued, err *Error, again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trying--
	now := mono.Now()
	denied := err != nil && err == it.last
	switch {
	case err == nil:
		q.numbers.Done++
		q.numbers.Bytes -= it.bytes
	case (again || denied) && q.c.ctx.Err() == nil && now.Sub(it.since) < q.limits.Age:
		it.last = err
		it.due = now.Add(q.delayLocked(it))
		q.waiting = append(q.waiting, it)
	default:
		q.giveUpLocked(it, err)
		if n := q.givenUp.Note(now); n > 0 {
			q.c.o.log.Warn("calls that were to be tried again later are given up: see Debug for each of them", "calls", n, "method", it.method.name, "err", err)
		}
	}
	wake(q.wake)
}

// delayLocked returns how long a call waits for its next try: less while Close waits for it.
func (q *failbacks) delayLocked(it *queued) time.Duration {
	if q.closing {
		return jitter(closingFailback)
	}
	return jitter(min(firstFailback<<min(it.tries, 10), lastFailback)) + max(it.last.RetryAfter, 0)
}

func (q *failbacks) giveUpLocked(it *queued, err *Error) {
	q.numbers.GivenUp++
	q.numbers.Bytes -= it.bytes
	q.c.o.log.Debug("a call that was to be tried again later is given up", "method", it.method.name, "tries", 1+it.tries, "err", err)
}

// abandon gives up the remaining calls when the client ends.
func (q *failbacks) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.waiting {
		q.giveUpLocked(it, it.last)
	}
	if n := len(q.waiting); n > 0 {
		q.c.o.log.Warn("calls that were to be tried again later are given up, as the client is closed: see Debug for each of them", "calls", n)
	}
	q.waiting, q.runs = nil, false
}

// drain accepts no more calls, and tries the waiting calls until they are done, within the time
// limit.
func (q *failbacks) drain() {
	q.mu.Lock()
	q.closing = true
	for _, it := range q.waiting {
		it.due = 0
	}
	var empty chan struct{}
	if q.runs && q.limits.Drain > 0 {
		empty = make(chan struct{})
		q.empty = empty
	}
	q.mu.Unlock()
	if empty == nil {
		return
	}
	wake(q.wake)
	t := time.NewTimer(q.limits.Drain)
	defer t.Stop()
	select {
	case <-empty:
	case <-t.C:
	}
}

// Package limiter bounds how many calls run at once, by a limit that adapts to how long they take,
// and lets a few more wait for their turn in order of priority.
package limiter

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// Limiter gives out places for calls: as many as its limit, which adapts. A call that finds no
// place waits in a queue, for a short time, behind the calls of higher priority. A call that finds
// the queue full is refused, unless a call of lower priority waits that can be refused instead.
//
// Waiting is bounded as in Facebook's servers (Maurer, "Fail at Scale", ACM Queue 13(8), 2015):
// while the queue empties now and then, calls of a burst may wait for long; a queue that never
// empties is of no use and is kept short.
//
// W is the type of a call that waits. All methods are safe for concurrent use. Taking and
// releasing a place costs an atomic operation each while no call waits.
type Limiter[W Waiter] struct {
	maxWait time.Duration
	changed func(limit, room int64)

	limit   atomic.Int64
	running atomic.Int64
	waiting atomic.Int64
	handing atomic.Int64 // waiting, or being handed over: see Next
	room    atomic.Int64 // calls that may wait
	next    mono.Atomic  // the time of the end of the window

	mu      sync.Mutex // guards the fields below
	lines   []line[W]  // by level
	emptied mono.Time  // last time at which no call waited
	timer   *time.Timer

	// Of the window.
	classes []*Class
	began   mono.Time
	held    atomic.Bool
	adapt   gradient
}

// Waiter is a call that waits. The limiter calls one of the methods, once, with its lock held:
// they must neither block nor call the limiter. A waiter is not counted as waiting any more then.
type Waiter interface {
	// Admit starts the call, which got its place at the time now.
	Admit(now mono.Time)
	// Refuse ends the call, which gets no place.
	Refuse(why Reason)
}

// Reason says why a call gets no place.
type Reason int

const (
	// Full is the reason of a call for which the queue has no room.
	Full Reason = iota
	// Late is the reason of a call that has waited for longer than Config.MaxWait.
	Late
)

// DefaultMaxWait is how long a call may wait where Config does not say it.
const DefaultMaxWait = 100 * time.Millisecond

// Config configures a Limiter.
type Config struct {
	Least, Most int           // bounds of the limit; 0 are GOMAXPROCS and 10,000
	MaxWait     time.Duration // time that a call may wait; 0 is DefaultMaxWait
	Levels      int           // number of priorities; calls of level Levels-1 come first

	// Changed is called, unless it is nil, when the limit or the number of calls that may wait is
	// computed anew: by New, and then at most every 100 ms. The rules for Waiter hold for it.
	Changed func(limit, room int64)
}

const (
	standingWait = 50 * time.Millisecond // length of a queue that has not been empty for DefaultMaxWait
	leastRoom    = 16
	maxRoom      = 10_000
)

// New returns a Limiter that no call uses yet.
func New[W Waiter](c Config) *Limiter[W] {
	l := &Limiter[W]{maxWait: c.MaxWait, changed: c.Changed, lines: make([]line[W], c.Levels), adapt: newGradient(c.Least, c.Most)}
	if l.maxWait == 0 {
		l.maxWait = DefaultMaxWait
	}
	if l.changed == nil {
		l.changed = func(int64, int64) {}
	}
	l.began = mono.Now()
	l.emptied = l.began
	l.next.Store(l.began.Add(windowTime))
	l.publishLocked(l.began, 0)
	return l
}

// MaxWait returns how long a call may wait.
func (l *Limiter[W]) MaxWait() time.Duration { return l.maxWait }

// publishLocked puts the limit into force. rate is calls per second that end, or 0 if not known.
func (l *Limiter[W]) publishLocked(now mono.Time, rate float64) {
	limit := l.adapt.places()
	l.limit.Store(limit)
	if l.waiting.Load() == 0 {
		l.emptied = now
	}
	wait := l.maxWait
	if now.Sub(l.emptied) > DefaultMaxWait {
		wait = min(wait, standingWait)
	}
	room := int64(rate * wait.Seconds())
	room = min(max(room, limit, leastRoom), maxRoom)
	l.room.Store(room)
	l.changed(limit, room)
}

// TryAcquire takes a place if one is free and no call waits for it.
func (l *Limiter[W]) TryAcquire() bool { return l.waiting.Load() == 0 && l.tryAcquire() }

func (l *Limiter[W]) tryAcquire() bool {
	for {
		n := l.running.Load()
		if n >= l.limit.Load() {
			return false
		}
		if l.running.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a place back. The caller must call Next afterwards, for a call that waits. It can
// send the answer of its own call in between.
func (l *Limiter[W]) Release() { l.running.Add(-1) }

// Crowded reports whether a call of the level would be refused now. It serves to refuse calls at
// little cost; Enqueue decides.
func (l *Limiter[W]) Crowded(level int) bool {
	if l.waiting.Load() < l.room.Load() || l.running.Load() < l.limit.Load() {
		return false
	}
	l.held.Store(true)
	if level == 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lowestLocked() >= level
}

// lowestLocked returns the lowest level at which a call waits, or one above all.
func (l *Limiter[W]) lowestLocked() int {
	for level := range l.lines {
		if l.lines[level].len() > 0 {
			return level
		}
	}
	return len(l.lines)
}

// Enqueue admits or refuses a call for which TryAcquire found no place, now or later.
func (l *Limiter[W]) Enqueue(w W, level int) {
	l.held.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := mono.Now()
	if l.waiting.Load() >= l.room.Load() {
		lowest := l.lowestLocked()
		if lowest >= level {
			w.Refuse(Full)
			return
		}
		l.refuseLocked(l.lines[lowest].last(), Full)
	}
	if l.waiting.Load() == 0 {
		l.emptied = now
	}
	l.lines[level].push(w, now)
	// A call may have released its place before it could see that this call waits; see Next.
	l.waiting.Add(1)
	l.handing.Add(1)
	l.admitLocked(now)
	if l.waiting.Load() > 0 && l.timer == nil {
		l.timer = time.AfterFunc(l.maxWait, l.sweep)
	}
}

// refuseLocked refuses a call that was taken out of its line.
func (l *Limiter[W]) refuseLocked(w W, why Reason) {
	l.waiting.Add(-1)
	w.Refuse(why)
	l.handing.Add(-1)
}

// admitLocked gives free places to the calls whose turn it is.
func (l *Limiter[W]) admitLocked(now mono.Time) {
	for l.waiting.Load() > 0 && l.tryAcquire() {
		w, ok := l.firstLocked(now)
		if !ok {
			l.running.Add(-1)
			continue // another place may have become free
		}
		l.waiting.Add(-1)
		w.Admit(now)
		l.handing.Add(-1)
	}
	if l.waiting.Load() == 0 {
		l.emptied = now
	}
}

// firstLocked takes out the call whose turn it is, after it has refused the late ones.
func (l *Limiter[W]) firstLocked(now mono.Time) (w W, ok bool) {
	for level := len(l.lines) - 1; level >= 0; level-- {
		line := &l.lines[level]
		l.dropLocked(line, now)
		if line.len() > 0 {
			return line.first(), true
		}
	}
	return w, false
}

// dropLocked refuses the late calls of a line.
func (l *Limiter[W]) dropLocked(line *line[W], now mono.Time) {
	for line.len() > 0 && now.Sub(line.since()) > l.maxWait {
		l.refuseLocked(line.first(), Late)
	}
}

// sweep refuses late calls while no place becomes free.
func (l *Limiter[W]) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := mono.Now()
	for level := range l.lines {
		l.dropLocked(&l.lines[level], now)
	}
	l.admitLocked(now) // a place may be free whose call has not called Next yet
	l.timer = nil
	if l.waiting.Load() > 0 {
		l.timer = time.AfterFunc(l.maxWait/4+1, l.sweep)
	}
}

// Next admits calls that wait, after Release. It returns one of them, with the time at which it
// got its place, for the calling goroutine to run; ok is false if there is none. The returned
// call's Admit is not called.
//
// It returns after the waiters that other goroutines admit or refuse at this moment were called.
// So a goroutine that counts as busy until Next returns covers them: the one that closes a server
// and waits for its busy goroutines does not miss a call.
func (l *Limiter[W]) Next() (w W, now mono.Time, ok bool) {
	// This looks at handing after the place was released, and Enqueue tries to take a place after
	// it has added to handing: one of the two sees the other.
	if l.handing.Load() == 0 {
		return w, 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now = mono.Now()
	if l.tryAcquire() {
		if w, ok = l.firstLocked(now); ok {
			l.waiting.Add(-1)
			l.handing.Add(-1)
		} else {
			l.running.Add(-1)
		}
	}
	l.admitLocked(now)
	return w, now, ok
}

// Stats are the numbers of a Limiter.
type Stats struct {
	Limit   int64 // calls that may run
	Running int64 // calls that have a place
	Room    int64 // calls that may wait
	Waiting int64 // calls that wait
}

// Stats returns the numbers of this moment.
func (l *Limiter[W]) Stats() Stats {
	return Stats{Limit: l.limit.Load(), Running: l.running.Load(), Room: l.room.Load(), Waiting: l.waiting.Load()}
}

// line is the queue of one level.
type line[W any] struct {
	entries []entry[W]
	head    int
}

type entry[W any] struct {
	waiter W
	since  mono.Time
}

func (q *line[W]) len() int { return len(q.entries) - q.head }

// since returns the time from which the first call waits.
func (q *line[W]) since() mono.Time { return q.entries[q.head].since }

func (q *line[W]) push(w W, now mono.Time) {
	if q.head > len(q.entries)/2 {
		q.entries, q.head = slices.Delete(q.entries, 0, q.head), 0
	}
	q.entries = append(q.entries, entry[W]{w, now})
}

// first takes out the call that has waited longest.
func (q *line[W]) first() W {
	w := q.entries[q.head].waiter
	q.entries[q.head] = entry[W]{}
	q.head++
	return w
}

// last takes out the call that came last.
func (q *line[W]) last() W {
	end := len(q.entries) - 1
	w := q.entries[end].waiter
	q.entries[end] = entry[W]{}
	q.entries = q.entries[:end]
	return w
}

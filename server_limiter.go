package anser

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// waitQueue lets as many calls run at once as its limit, which adapts, and lets others wait for their turn: for a
// short time, in lines by priority. Who finds the room full is refused, unless somebody of lower
// priority waits who can be refused in its place.
//
// Waiting is bounded like in Facebook's servers (Maurer, "Fail at Scale", ACM Queue 13(8), 2015): while now and
// then nobody waits, a burst may wait for long; when somebody has been waiting all the time, a queue is
// of no use any more, and stays short.
type waitQueue struct {
	owner  string // the method, or "" for that of the server
	strict int64  // nanoseconds that a call may wait, 0: gateWait

	limit   atomic.Int64
	running atomic.Int64
	waiting atomic.Int64
	room    atomic.Int64          // calls that may wait
	full    atomic.Pointer[Error] // for those that find no place
	next    atomic.Int64          // nanotime of the end of the window

	mu      sync.Mutex // guards what follows
	lines   [Critical + 1]waitList
	emptied int64 // nanotime until which nobody waited
	timer   *time.Timer

	// Of the window.
	guards []*methodLimits // of the methods that share the gate
	began  int64
	held   atomic.Bool
	adapt  adaptive
}

const (
	gateWait     = 100 * time.Millisecond // that a call may wait
	standingWait = 50 * time.Millisecond  // the length of the queue, as time, when it has been there for gateWait
	leastRoom    = 16
	maxRoom      = 10_000
)

func newWaitQueue(owner string, b *limitBounds, queueTime time.Duration) *waitQueue {
	g := &waitQueue{owner: owner, strict: int64(queueTime), adapt: newAdaptive(b.least, b.most), began: nanotime()}
	g.emptied = g.began
	g.next.Store(g.began + int64(limitWindow))
	g.publishLocked(g.began, 0)
	return g
}

// watch adds a guard whose method's calls go through the gate.
func (g *waitQueue) watch(m *methodLimits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guards = append(g.guards, m)
}

// patience is how long a call may wait.
func (g *waitQueue) patience() int64 {
	if g.strict != 0 {
		return g.strict
	}
	return int64(gateWait)
}

// publishLocked makes the limit hold. rate is calls a second that end, or 0 if that is not known.
func (g *waitQueue) publishLocked(now int64, rate float64) {
	limit := g.adapt.places()
	g.limit.Store(limit)
	wait := g.patience()
	if g.waiting.Load() == 0 {
		g.emptied = now
	}
	if now-g.emptied > int64(gateWait) {
		wait = min(wait, int64(standingWait))
	}
	room := int64(rate * float64(wait) / 1e9)
	room = min(max(room, limit, leastRoom), maxRoom)
	g.room.Store(room)
	whose := "the server"
	if g.owner != "" {
		whose = "the method " + g.owner
	}
	g.full.Store(over(limitAdaptive, "%s is overloaded: %d calls run, its limit for now, and %d wait (anser.AdaptiveLimit)", whose, limit, room))
}

// tryAcquire takes a place if there is one.
func (g *waitQueue) tryAcquire() bool {
	for {
		n := g.running.Load()
		if n >= g.limit.Load() {
			return false
		}
		if g.running.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// crowded reports whether a call of the priority would be refused now. It is for refusing cheaply; enter
// decides.
func (g *waitQueue) crowded(p Priority) bool {
	if g.waiting.Load() < g.room.Load() || g.running.Load() < g.limit.Load() {
		return false
	}
	g.held.Store(true)
	if p == Sheddable {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lowestLocked() >= p
}

// lowestLocked is the lowest priority that waits, or one above all.
func (g *waitQueue) lowestLocked() Priority {
	for p := range g.lines {
		if g.lines[p].len() > 0 {
			return Priority(p)
		}
	}
	return Critical + 1
}

// enter has a worker run the job, now or when it is its turn, or refuse it.
func (g *waitQueue) enter(j *job) {
	if g.waiting.Load() == 0 && g.tryAcquire() {
		g.start(j, nanotime())
		return
	}
	g.held.Store(true)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := nanotime()
	p := j.ctx.level()
	if g.waiting.Load() >= g.room.Load() {
		lowest := g.lowestLocked()
		if lowest >= p {
			j.refuse(g.full.Load())
			return
		}
		g.refuseLocked(g.lines[lowest].last(), g.full.Load())
	}
	if g.waiting.Load() == 0 {
		g.emptied = now
	}
	j.since = now
	g.lines[p].push(j)
	// Somebody may have left before it could see that this call waits; see leave.
	g.waiting.Add(1)
	g.admitLocked(now)
	if g.waiting.Load() > 0 && g.timer == nil {
		g.timer = time.AfterFunc(time.Duration(g.patience()), g.sweep)
	}
}

// start runs a job that has a place.
func (g *waitQueue) start(j *job, now int64) {
	j.place(now)
	j.ctx.conn.server.workers.do(j)
}

// place notes that the job has a place.
func (j *job) place(now int64) {
	j.ctx.priority |= hasPlace
	j.granted = now
}

// refuseLocked refuses a call that has been taken out of its line.
func (g *waitQueue) refuseLocked(j *job, e *Error) {
	defer g.noLongerWaits(j).release()
	j.refuse(e)
}

// noLongerWaits counts the call of j out of those that wait, before a worker gets it: the worker may answer at
// once, and its caller must not find the call waiting still. A server that closes waits for the workers, of
// which the ones that hold a place look for calls that wait. So until the returned hold is released, which is
// after j was handed to a worker, the workers count as busy.
func (g *waitQueue) noLongerWaits(j *job) *workers {
	p := &j.ctx.conn.server.workers
	p.hold()
	g.waiting.Add(-1)
	return p
}

// refuse has a worker refuse the call: its connection may be one whose client does not read.
func (j *job) refuse(e *Error) {
	j.ctx.method.limits.shed[j.ctx.level()].Add(1)
	j.refused = e
	j.ctx.conn.server.workers.do(j)
}

// admitLocked lets those in whose turn it is.
func (g *waitQueue) admitLocked(now int64) {
	for g.waiting.Load() > 0 && g.tryAcquire() {
		j := g.firstLocked(now)
		if j == nil {
			g.running.Add(-1)
			continue // somebody else may have left
		}
		held := g.noLongerWaits(j)
		g.start(j, now)
		held.release()
	}
	if g.waiting.Load() == 0 {
		g.emptied = now
	}
}

// firstLocked takes out the call whose turn it is, after those that have waited for too long.
func (g *waitQueue) firstLocked(now int64) *job {
	for p := len(g.lines) - 1; p >= 0; p-- {
		l := &g.lines[p]
		g.dropLocked(l, now)
		if l.len() > 0 {
			return l.first()
		}
	}
	return nil
}

// dropLocked refuses those that have waited for too long.
func (g *waitQueue) dropLocked(l *waitList, now int64) {
	for l.len() > 0 && now-l.jobs[l.head].since > g.patience() {
		j := l.first()
		g.refuseLocked(j, j.ctx.method.limits.late)
	}
}

// sweep refuses those that have waited for too long while nobody left.
func (g *waitQueue) sweep() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := nanotime()
	for p := range g.lines {
		g.dropLocked(&g.lines[p], now)
	}
	g.admitLocked(now) // a worker that left may still be sending its answer
	g.timer = nil
	if g.waiting.Load() > 0 {
		g.timer = time.AfterFunc(time.Duration(g.patience()/4+1), g.sweep)
	}
}

// release gives a place back. What waits is let in by following, which has to be called afterwards: the answer of
// the call is sent in between.
func (g *waitQueue) release() { g.running.Add(-1) }

// nextJob lets in those who wait, and returns one of them for the worker that calls it, or nil. It looks at
// waiting after the place was given back, and enter tries to take a place after it has entered itself in
// waiting: one of the two sees the other.
func (g *waitQueue) nextJob() *job {
	if g.waiting.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := nanotime()
	var own *job
	if g.tryAcquire() {
		if own = g.firstLocked(now); own == nil {
			g.running.Add(-1)
		} else {
			own.place(now)
			g.waiting.Add(-1)
		}
	}
	g.admitLocked(now)
	return own
}

// note takes into account that a call of the guard's method took d nanoseconds since it got its place.
func (g *waitQueue) note(of *methodLimits, d, now int64) {
	of.calls.Add(1)
	of.spent.Add(d)
	for old := of.least.Load(); (old == 0 || d < old) && !of.least.CompareAndSwap(old, d); old = of.least.Load() {
	}
	if now < g.next.Load() || !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	if now >= g.next.Load() {
		g.windowLocked(now)
	}
}

// windowLocked ends a window that has enough samples.
func (g *waitQueue) windowLocked(now int64) {
	g.next.Store(now + int64(limitWindow)/4)
	total := int64(0)
	for _, m := range g.guards {
		total += m.calls.Load()
	}
	if total < limitSamples {
		return
	}
	held, measured := g.held.Swap(false), g.adapt.measures()
	var took, usual float64
	for _, m := range g.guards {
		n := float64(m.calls.Swap(0))
		spent, least := float64(m.spent.Swap(0)), float64(m.least.Swap(0))
		if n == 0 {
			continue
		}
		if m.pace.usual == 0 || !measured {
			m.pace.fold(spent/n, least, held, false)
			took, usual = took+spent, usual+n*m.pace.usual
			continue
		}
		took, usual = took+spent, usual+n*m.pace.usual
		m.pace.fold(spent/n, least, held, true)
	}
	g.adapt.step(took/max(usual, 1), held)
	g.publishLocked(now, float64(total)/(float64(now-g.began)/1e9))
	g.began = now
	g.next.Store(now + int64(limitWindow))
	g.admitLocked(now)
}

// waitList is a queue of calls of one priority.
type waitList struct {
	jobs []*job
	head int
}

func (l *waitList) len() int { return len(l.jobs) - l.head }

func (l *waitList) push(j *job) {
	if l.head > len(l.jobs)/2 {
		l.jobs, l.head = slices.Delete(l.jobs, 0, l.head), 0
	}
	l.jobs = append(l.jobs, j)
}

// first takes out the call that has waited for longest.
func (l *waitList) first() *job {
	j := l.jobs[l.head]
	l.jobs[l.head] = nil
	l.head++
	return j
}

// last takes out the call that came last.
func (l *waitList) last() *job {
	end := len(l.jobs) - 1
	j := l.jobs[end]
	l.jobs[end] = nil
	l.jobs = l.jobs[:end]
	return j
}

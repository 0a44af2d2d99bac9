package anser

import (
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/limiter"
	"github.com/anser-rpc/anser/internal/mono"
)

// waitQueue is an adaptive limit and the queue of the calls that wait for it.
type waitQueue struct {
	*limiter.Limiter[*job]
	owner string                // the method, or "" for the server
	full  atomic.Pointer[Error] // for calls that find no room
}

func newWaitQueue(owner string, b *limitBounds, queueTime time.Duration) *waitQueue {
	q := &waitQueue{owner: owner}
	whose := "the server"
	if owner != "" {
		whose = "the method " + owner
	}
	q.Limiter = limiter.New[*job](limiter.Config{
		Least: b.least, Most: b.most, MaxWait: queueTime, Levels: int(Critical) + 1,
		Changed: func(limit, room int64) {
			q.full.Store(over(limitAdaptive, "%s is overloaded: %d calls run, its limit for now, and %d wait (anser.AdaptiveLimit)", whose, limit, room))
		},
	})
	return q
}

// enter makes a worker run the job, now or when its turn comes, or refuses it.
func (q *waitQueue) enter(j *job) {
	if q.TryAcquire() {
		j.Admit(mono.Now())
		return
	}
	q.Enqueue(j, int(j.ctx.level()))
}

// Admit makes a worker run the job, which has a place.
func (j *job) Admit(now mono.Time) {
	j.place(now)
	j.start()
}

// place records that the job has a place.
func (j *job) place(now mono.Time) {
	j.ctx.priority |= hasPlace
	j.granted = now
}

// Refuse makes a worker refuse the call: its client may not be reading.
func (j *job) Refuse(why limiter.Reason) {
	limits := j.ctx.method.limits
	limits.shed[j.ctx.level()].Add(1)
	j.refused = limits.late
	if why == limiter.Full {
		j.refused = limits.queue.full.Load()
	}
	j.start()
}

// nextJob returns a waiting job, for the worker that calls it after Release, or nil.
func (q *waitQueue) nextJob() *job {
	j, now, ok := q.Next()
	if !ok {
		return nil
	}
	j.place(now)
	return j
}

// stats returns the numbers of the limit, or 0 without one.
func (q *waitQueue) stats() LimitStats {
	if q == nil {
		return LimitStats{}
	}
	s := q.Stats()
	return LimitStats{Limit: s.Limit, Running: s.Running, Waiting: s.Waiting, Room: s.Room}
}

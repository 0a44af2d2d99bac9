package ratelimit

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/loglimit"
	"github.com/anser-rpc/anser/internal/mono"
)

// callers holds a bucket per caller, in a table of limited size.
type callers struct {
	l       *Limiter
	r       Rate
	most    int
	full    time.Duration // after which an unused bucket is full
	refused atomic.Int64
	rest    *bucket         // shared by callers without a bucket
	crowded loglimit.Seldom // calls of those

	mu     sync.Mutex // guards what follows
	byKey  map[string]*list.Element
	recent *list.List // of *caller, the most recent one in front
}

type caller struct {
	key    string
	bucket *bucket
	last   time.Time
}

func newCallers(l *Limiter, r Rate, most int) *callers {
	c := &callers{l: l, r: r, most: most, byKey: make(map[string]*list.Element), recent: list.New()}
	c.full = time.Duration(float64(r.Burst) / r.PerSecond * float64(time.Second))
	c.rest = c.newBucket("rest")
	return c
}

func (c *callers) newBucket(name string) *bucket {
	b := c.l.newBucket(name, "a caller", "Caller", c.r)
	b.refused = &c.refused
	return b
}

// bucket returns the bucket of the caller with that key, which may be the one of the callers for
// which the table has no room.
func (c *callers) bucket(key string, now time.Time) *bucket {
	b := c.find(key, now)
	if b == c.rest {
		if n := c.crowded.Note(mono.Now()); n > 0 {
			c.l.o.log.Warn("there are more callers than ratelimit.MaxCallers: the others share one bucket", "callers", c.most, "calls", n)
		}
	}
	return b
}

func (c *callers) find(key string, now time.Time) *bucket {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.recent.MoveToFront(e)
		who := e.Value.(*caller)
		who.last = now
		return who.bucket
	}
	if len(c.byKey) >= c.most {
		oldest := c.recent.Back()
		who := oldest.Value.(*caller)
		if now.Sub(who.last) < c.full {
			return c.rest
		}
		c.recent.Remove(oldest)
		delete(c.byKey, who.key)
	}
	who := &caller{key, c.newBucket("caller/" + key), now}
	c.byKey[key] = c.recent.PushFront(who)
	return who.bucket
}

// count returns the number of callers, and of refused calls.
func (c *callers) count() (n int, refused int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byKey), c.refused.Load()
}

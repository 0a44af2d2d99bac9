package limiter

import (
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// Class holds what a limiter has learned of a class of calls that usually take the same time, such
// as the calls of one method. The zero value is ready for AddClass.
type Class struct {
	// Of the window.
	calls atomic.Int64
	spent atomic.Int64 // nanoseconds
	least atomic.Int64 // nanoseconds of the fastest call; 0: none

	base baseline // guarded by Limiter.mu
}

// AddClass adds a class whose calls go through the limiter.
func (l *Limiter[W]) AddClass(c *Class) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.classes = append(l.classes, c)
}

// Usual returns how long a call of the class takes without a queue, or 0 if that is not known.
func (l *Limiter[W]) Usual(c *Class) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(c.base.usual)
}

// Record takes into account that a call of the class took d, from its place on until now.
func (l *Limiter[W]) Record(c *Class, d time.Duration, now mono.Time) {
	c.calls.Add(1)
	c.spent.Add(int64(d))
	for old := c.least.Load(); (old == 0 || int64(d) < old) && !c.least.CompareAndSwap(old, int64(d)); old = c.least.Load() {
	}
	if now < l.next.Load() || !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	if now >= l.next.Load() {
		l.windowLocked(now)
	}
}

// windowLocked ends a window that has enough samples.
func (l *Limiter[W]) windowLocked(now mono.Time) {
	l.next.Store(now.Add(windowTime / 4))
	total := int64(0)
	for _, c := range l.classes {
		total += c.calls.Load()
	}
	if total < windowSamples {
		return
	}
	held, measured := l.held.Swap(false), l.adapt.measures()
	var took, usual float64
	for _, c := range l.classes {
		n := float64(c.calls.Swap(0))
		spent, least := float64(c.spent.Swap(0)), float64(c.least.Swap(0))
		if n == 0 {
			continue
		}
		if c.base.usual == 0 || !measured {
			c.base.fold(spent/n, least, held, false)
			took, usual = took+spent, usual+n*c.base.usual
			continue
		}
		took, usual = took+spent, usual+n*c.base.usual
		c.base.fold(spent/n, least, held, true)
	}
	l.adapt.step(took/max(usual, 1), held)
	l.publishLocked(now, float64(total)/now.Sub(l.began).Seconds())
	l.began = now
	l.next.Store(now.Add(windowTime))
	l.admitLocked(now)
}

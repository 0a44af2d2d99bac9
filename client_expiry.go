package anser

import (
	"context"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// expireLocked sets the timer that ends calls whose time is over.
func (c *callerHalf) expireLocked(at mono.Time) {
	c.expireAt = at
	d := mono.Until(at)
	if c.expiry == nil {
		c.expiry = time.AfterFunc(d, c.expire)
	} else {
		c.expiry.Reset(d)
	}
}

// lookCost is how long a call that is open puts off the next look at all that are.
const lookCost = 100 * time.Nanosecond

// expire ends the calls whose time is over and sets the timer for the next one.
func (c *callerHalf) expire() {
	c.mu.Lock()
	now, next := mono.Now(), mono.Time(0)
	var over []*call
	c.open.Each(func(k *call) {
		switch {
		case k.deadline == 0:
		case k.deadline <= now:
			over = append(over, k)
		case next == 0 || k.deadline < next:
			next = k.deadline
		}
	})
	for _, k := range over {
		c.open.Take(k.id)
		k.failed = failure(DeadlineExceeded, OutcomeUnknown, PhaseWait, context.DeadlineExceeded, "no reply within the call's time")
		c.cancelLocked(k, true, now)
	}
	c.busy.Store(int32(c.open.Len()))
	c.expireAt = 0
	if next != 0 && c.err == nil {
		// Each open call makes the scan cost some nanoseconds more, so the next scan is put off
		// accordingly.
		c.expireLocked(max(next, now.Add(time.Duration(c.open.Len())*lookCost)))
	}
	c.mu.Unlock()
	for _, k := range over {
		k.over()
	}
	if len(over) > 0 {
		c.interruptCaller()
	}
}

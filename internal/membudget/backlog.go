package membudget

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	waitingShare = 4 // work waits from 1/waitingShare of the budget on
	droppedShare = 2 // beyond 1/droppedShare of it, only a receiver that takes results gets more
	excess       = 2 // with this many times the budget in use, each backlog holds one result
)

// expectedFor is how long results are expected of work that has waited if nothing changes: what it
// waits for may be other work, which waits behind it.
const expectedFor = 100 * time.Millisecond

// sizeShare is the share of the latest result in the average size of results.
const sizeShare = 8

// Backlog holds the bytes of results that wait until one receiver takes them. A receiver that takes
// nothing must not use up the budget: from a quarter of it on, work for that receiver does not
// begin. Work that has begun already may end with more; beyond half of the budget, its results
// cannot be held for a receiver that takes none. A Backlog is safe for concurrent use.
type Backlog struct {
	budget *Budget
	bytes  atomic.Int64 // changes with mu held

	mu       sync.Mutex   // guards the fields below
	size     int          // average of the results that were not forced
	expected int64        // bytes of the results of work that has waited, and runs
	waiting  []chan<- int // get what is expected of them
	timed    bool         // the expectation may end
	changes  uint         // of what waits or is expected
	over     bool         // the receiver is gone
}

// SetBudget sets the budget. It must be called before the other methods.
func (b *Backlog) SetBudget(budget *Budget) { b.budget = budget }

// Any reports whether a result waits.
func (b *Backlog) Any() bool { return b.bytes.Load() > 0 }

// Full reports whether work that begins now must wait.
func (b *Backlog) Full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fullLocked()
}

func (b *Backlog) fullLocked() bool {
	return !b.over && (len(b.waiting) > 0 || b.bytes.Load() >= b.budget.limit/waitingShare)
}

// Over reports whether more waits than Hold allows for a receiver that takes nothing.
func (b *Backlog) Over() bool { return b.bytes.Load() > b.budget.limit/droppedShare }

// Hold counts a result of n bytes until Release. It reports false, and counts nothing, if too many
// bytes wait: fewer are too many if taken is false, that is if the receiver has lately taken none.
// A result before which no other one waits is always held.
func (b *Backlog) Hold(n int, taken bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noteSizeLocked(n)
	before, limit := b.bytes.Load(), b.budget.limit
	if before > 0 && (!taken && before+int64(n) > limit/droppedShare || b.budget.Held()+int64(n) > limit*excess) {
		return false
	}
	b.countLocked(n)
	return true
}

// noteSizeLocked adds a result of n bytes to the average.
func (b *Backlog) noteSizeLocked(n int) {
	if b.size == 0 {
		b.size = n
	}
	b.size += (n - b.size) / sizeShare
}

// Force counts a result of n bytes until Release, regardless of what waits.
func (b *Backlog) Force(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countLocked(n)
}

// Take is like Force, but reports false, and counts nothing, if the budget does not allow it.
func (b *Backlog) Take(n int) bool {
	if !b.budget.Take(n) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes.Add(int64(n))
	return true
}

func (b *Backlog) countLocked(n int) {
	b.budget.Force(n)
	b.bytes.Add(int64(n))
}

// Release ends Hold, Force or Take: the receiver has the n bytes, or they are dropped.
func (b *Backlog) Release(n int) {
	b.budget.Give(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes.Add(int64(-n))
	b.changes++
	b.beginLocked()
}

// Await waits before work begins, while much of the budget waits for the receiver. It returns how
// many bytes of result are expected of the work if it has waited, for Known: as many as results
// have on average. Without that, all work that waits would begin at once.
func (b *Backlog) Await() (expected int) {
	b.mu.Lock()
	if !b.fullLocked() {
		b.mu.Unlock()
		return 0
	}
	begin := make(chan int, 1)
	b.waiting = append(b.waiting, begin)
	b.mu.Unlock()
	return <-begin
}

// Known records that the result is known of which a number of bytes was expected.
func (b *Backlog) Known(expected int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = max(0, b.expected-int64(expected))
	b.changes++
	b.beginLocked()
}

// End lets all work begin: the receiver is gone, and results are dropped soon.
func (b *Backlog) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.beginLocked()
}

// beginLocked lets work begin.
func (b *Backlog) beginLocked() {
	if len(b.waiting) == 0 {
		return
	}
	most := b.budget.limit / waitingShare
	left := b.bytes.Load()
	for len(b.waiting) > 0 && (b.over || left+b.expected < most) {
		b.expected += int64(b.size)
		b.waiting[0] <- b.size
		b.waiting = b.waiting[1:]
	}
	if len(b.waiting) > 0 && left < most && !b.timed {
		b.timed = true
		changes := b.changes
		time.AfterFunc(expectedFor, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.timed = false; b.changes == changes {
				b.expected = 0
			}
			b.beginLocked()
		})
	}
}

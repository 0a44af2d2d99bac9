package anser

import (
	"sync"
	"sync/atomic"
	"time"
)

// budget bounds the retries of a client: a share of its calls plus a number a second, remembered
// for ten seconds. Calls are counted with one atomic addition; the rest happens when one is retried.
type budget struct {
	ratio, rate float64
	calls       atomic.Int64

	mu     sync.Mutex // guards what follows
	seen   int64      // of calls, at the last look
	looked int64      // nanotime of the last look
	earned float64    // retries that calls have paid for
	spare  float64    // retries that time has paid for
}

const budgetMemory = 10 * time.Second

func newBudget(ratio, rate float64) *budget {
	return &budget{ratio: ratio, rate: rate, spare: rate, looked: nanotime()}
}

// withdraw takes one retry, if there is one left.
func (b *budget) withdraw(now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	dt := time.Duration(max(now-b.looked, 0))
	b.looked = now
	calls := b.calls.Load()
	fresh := float64(calls-b.seen) * b.ratio
	b.seen = calls
	// What lies further back than the memory is forgotten, evenly.
	if dt > budgetMemory {
		fresh *= float64(budgetMemory) / float64(dt)
	}
	b.earned = b.earned*max(0, 1-float64(dt)/float64(budgetMemory)) + fresh
	b.spare = min(b.spare+b.rate*dt.Seconds(), b.rate*budgetMemory.Seconds())
	switch {
	case b.earned >= 1:
		b.earned--
	case b.spare >= 1:
		b.spare--
	default:
		return false
	}
	return true
}

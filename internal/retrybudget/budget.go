// Package retrybudget limits retries to a fraction of the calls.
package retrybudget

import (
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/striped"
)

// Budget bounds the retries of a client to a fraction of its calls plus a number per second,
// accumulated over ten seconds. A call costs one addition to a counter; the rest happens on a
// retry. Safe for concurrent use.
type Budget struct {
	ratio, rate float64
	calls       striped.Counter

	mu     sync.Mutex // guards the fields below
	seen   int64      // calls at the last update
	looked mono.Time  // time of the last update
	earned float64    // retries earned by calls
	spare  float64    // retries earned by time
}

const memory = 10 * time.Second

// New returns a budget of ratio retries per call and rate retries per second.
func New(ratio, rate float64) *Budget {
	return &Budget{ratio: ratio, rate: rate, spare: rate, looked: mono.Now()}
}

// Deposit counts a call. Calls that are made at the same time should mostly have different places.
func (b *Budget) Deposit(place uint32) { b.calls.Add(place, 1) }

// Withdraw takes one retry and reports whether there was one.
func (b *Budget) Withdraw(now mono.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	dt := max(now.Sub(b.looked), 0)
	b.looked = now
	calls := b.calls.Load()
	fresh := float64(calls-b.seen) * b.ratio
	b.seen = calls
	// Budget earned longer ago than the memory is forgotten, evenly.
	if dt > memory {
		fresh *= float64(memory) / float64(dt)
	}
	b.earned = b.earned*max(0, 1-float64(dt)/float64(memory)) + fresh
	b.spare = min(b.spare+b.rate*dt.Seconds(), b.rate*memory.Seconds())
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

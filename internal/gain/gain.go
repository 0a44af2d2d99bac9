// Package gain estimates whether compressing messages pays.
package gain

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// Table holds the estimators of one method in one direction, one per algorithm. The zero value
// is empty. Safe for concurrent use.
type Table struct {
	head atomic.Pointer[Estimator]
}

// All returns the estimators.
func (l *Table) All() iter.Seq[*Estimator] {
	return func(yield func(*Estimator) bool) {
		for p := l.head.Load(); p != nil && yield(p); p = p.next {
		}
	}
}

// Of returns the estimator of an algorithm. There are few: a walk is faster than a map.
func (l *Table) Of(c Algorithm) *Estimator {
	id := c.ID()
	var p *Estimator
	for {
		head := l.head.Load()
		for known := head; known != nil; known = known.next {
			if known.id == id {
				return known
			}
		}
		if p == nil {
			p = &Estimator{id: id, Name: c.Name()}
		}
		p.next = head
		if l.head.CompareAndSwap(head, p) {
			return p
		}
	}
}

// Algorithm is the part of a compressor that an estimator needs.
type Algorithm interface {
	ID() uint8
	Name() string
}

// Estimator decides for one algorithm. Safe for concurrent use.
//
// It sums over the recent messages, so that a message weighs by its size, as it does on the link.
// While compressing does not pay, the next messages are skipped, twice as many as the last time,
// and then a few are tried again: the messages of a method may change.
type Estimator struct {
	id   uint8
	Name string     // of the algorithm
	next *Estimator // immutable once it is in a list

	// Counters for statistics. The caller counts Packed and Plain.
	Packed atomic.Int64 // messages sent compressed
	Plain  atomic.Int64 // messages sent uncompressed
	Before atomic.Int64 // bytes passed to the algorithm
	After  atomic.Int64 // bytes returned by it
	Spent  atomic.Int64 // nanoseconds it took

	left atomic.Int64 // messages to skip before the next try

	mu      sync.Mutex // guards the fields below
	warm    bool       // the first message, whose time includes creating an encoder, is over
	tried   int        // messages in the sums
	in, out int64      // bytes
	took    time.Duration
	penalty int64 // messages skipped the last time; 0: compressing has paid off
}

const (
	firstJudgement = 4 // messages before the first judgement
	laterJudgement = 2 // after messages were skipped
	windowSize     = 64
	leastPenalty   = 32
	mostPenalty    = 4096
	outlier        = 8 // a message that took this many times the expected time was interrupted
)

// Resting reports whether messages are skipped at present.
func (p *Estimator) Resting() bool { return p.left.Load() > 0 }

// Skip reports whether the next message should not be compressed, and counts it.
func (p *Estimator) Skip() bool {
	if p.left.Load() <= 0 {
		return false
	}
	p.left.Add(-1)
	return true
}

// Note takes a compressed message into account: its size in bytes before and after, and the time d
// in nanoseconds that it took.
func (p *Estimator) Note(before, after int, d time.Duration) {
	p.Before.Add(int64(before))
	p.After.Add(int64(after))
	p.Spent.Add(int64(d))
}

// Judge takes the message into account for the decision of callers that compress only if it pays:
// a message must shrink by at least one byte in minGain, and a saved byte may cost at most price.
func (p *Estimator) Judge(before, after int, d time.Duration, minGain int64, price time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.warm {
		p.warm = true
		return
	}
	if p.tried > 0 && p.in > 0 {
		d = min(d, outlier*(p.took*time.Duration(before)/time.Duration(p.in)+1))
	}
	p.in, p.out, p.took = p.in+int64(before), p.out+int64(after), p.took+d
	p.tried++
	due := firstJudgement
	if p.penalty > 0 {
		due = laterJudgement
	}
	if p.tried < due {
		return
	}
	saved := p.in - p.out
	if saved < p.in/minGain || p.took > time.Duration(saved)*price {
		p.penalty = min(max(2*p.penalty, leastPenalty), mostPenalty)
		p.left.Store(p.penalty)
		p.tried, p.in, p.out, p.took = 0, 0, 0, 0
		return
	}
	p.penalty = 0
	if p.tried >= windowSize {
		p.tried, p.in, p.out, p.took = p.tried/2, p.in/2, p.out/2, p.took/2
	}
}

package anser

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/compress"
)

// payoffs are what compressing the messages of one method in one direction has been like, for each
// algorithm that was used.
type payoffs struct {
	head atomic.Pointer[payoff]
}

// of returns the entry of an algorithm. There are few: a walk is faster than a map.
func (l *payoffs) of(c compress.Compressor) *payoff {
	id := c.ID()
	var p *payoff
	for {
		head := l.head.Load()
		for known := head; known != nil; known = known.next {
			if known.id == id {
				return known
			}
		}
		if p == nil {
			p = &payoff{id: id, name: c.Name()}
		}
		p.next = head
		if l.head.CompareAndSwap(head, p) {
			return p
		}
	}
}

// payoff is the entry of one algorithm.
//
// Whether compressing pays is judged by sums over the recent messages, which weigh a message by
// its size as the link does. Where it does not, the next ones are left alone, twice as many as the last time, and
// then a few are tried again: the messages of a method may change.
type payoff struct {
	id   uint8
	name string
	next *payoff // not changed once it is in a list

	packed atomic.Int64 // messages that were sent compressed
	plain  atomic.Int64 // that were sent as they are
	before atomic.Int64 // bytes that were given to the algorithm
	after  atomic.Int64 // that it made of them
	spent  atomic.Int64 // nanoseconds

	left atomic.Int64 // messages that are left alone before the next try

	mu      sync.Mutex // guards what follows
	warm    bool       // the first message, whose time is that of making an encoder, is over
	tried   int        // messages in the sums
	in, out int64      // bytes
	took    int64      // nanoseconds
	penalty int64      // how many messages were left alone the last time; 0: it has been paying
}

const (
	firstJudgement = 4 // messages before the first judgement
	laterJudgement = 2 // after a time of leaving alone
	payoffMemory   = 64
	leastPenalty   = 32
	mostPenalty    = 4096
	outlier        = 8 // a message that took so many times what its size lets expect was interrupted
)

// skips reports whether the next message is to be left alone, and counts it.
func (p *payoff) skips() bool {
	if p.left.Load() <= 0 {
		return false
	}
	p.left.Add(-1)
	return true
}

// note takes a message into account that was compressed in d nanoseconds.
func (p *payoff) note(before, after int, d int64, z *compression) {
	p.before.Add(int64(before))
	p.after.Add(int64(after))
	p.spent.Add(d)
	if z.mode != Dynamic {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.warm {
		p.warm = true
		return
	}
	if p.tried > 0 && p.in > 0 {
		d = min(d, outlier*(p.took*int64(before)/p.in+1))
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
	if saved < p.in/minGain || p.took > saved*int64(z.price) {
		p.penalty = min(max(2*p.penalty, leastPenalty), mostPenalty)
		p.left.Store(p.penalty)
		p.tried, p.in, p.out, p.took = 0, 0, 0, 0
		return
	}
	p.penalty = 0
	if p.tried >= payoffMemory {
		p.tried, p.in, p.out, p.took = p.tried/2, p.in/2, p.out/2, p.took/2
	}
}

// CompressionStats tell what compressing the messages of one method with one algorithm has been like:
// the requests of a client, or the replies of a server, and the messages of streams that the side sent. The
// counters only grow.
type CompressionStats struct {
	Method    string
	Algorithm string
	Packed    int64         // messages that were sent compressed
	Plain     int64         // messages that were sent as they are: small ones, and where it did not pay
	Before    int64         // bytes that were given to the algorithm
	After     int64         // bytes that it made of them
	Time      time.Duration // that it took
	Resting   bool          // Dynamic has found that it does not pay, and tries again later
}

// stats appends the entries of a method.
func (l *payoffs) stats(list []CompressionStats, method string) []CompressionStats {
	for p := l.head.Load(); p != nil; p = p.next {
		list = append(list, CompressionStats{
			Method: method, Algorithm: p.name, Packed: p.packed.Load(), Plain: p.plain.Load(),
			Before: p.before.Load(), After: p.after.Load(), Time: time.Duration(p.spent.Load()), Resting: p.left.Load() > 0,
		})
	}
	return list
}

// sortCompression puts the entries into an order that does not depend on that of the calls.
func sortCompression(list []CompressionStats) {
	slices.SortFunc(list, func(a, b CompressionStats) int {
		if c := strings.Compare(a.Method, b.Method); c != 0 {
			return c
		}
		return strings.Compare(a.Algorithm, b.Algorithm)
	})
}

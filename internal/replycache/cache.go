// Package replycache remembers the replies of calls with idempotency keys, so that a repeated call
// gets the reply of the first one.
package replycache

import (
	"container/heap"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

const (
	keyBytes      = 72          // of a key in a table; TestMemoryOfKeys measures it
	replyOverhead = 96          // of a reply, in addition to its frame
	shareFactor   = 8           // a client's keys may take this many times the bytes that are left
	spansOfAge    = 6           // tables that hold the keys of Config.Age
	graceOfAge    = time.Minute // added to Config.Age, as a repeat may be under way
	maxTick       = 2 * time.Second
)

// MinBytes is the least value of Config.Bytes that is of use.
const MinBytes = 4 << 10

// Config bounds what a Cache remembers.
type Config struct {
	Bytes int           // of keys and replies
	Age   time.Duration // time for which a key is known after its call has ended
}

// Cache knows the calls with idempotency keys. A key that ran is known for Config.Age: if there is
// no room for another key, the new call is refused, and no old key is forgotten. Replies are
// dropped for room, the oldest first, of the client whose replies take most (longest queue drop).
// The share of the room that one client's keys may take depends on what is left (the dynamic
// threshold of Choudhury and Hahne, 1998), so no client can use up all of it.
//
// The clock of the cache advances only while the process runs. After a stop of the process,
// repeats that waited in a socket still find their keys.
//
// C is the type of a call that runs. All methods are safe for concurrent use.
type Cache[C any] struct {
	bytes int
	age   time.Duration

	mu      sync.Mutex // guards the fields below
	running map[ID]*Call[C]
	spans   []*span // oldest first; the last one takes new keys
	shares  map[Client]*share
	largest sharesByReplies
	keys    int           // known or running
	replies int           // bytes of replies
	clock   time.Duration // for which the process has run
	ticked  mono.Time     // of the last tick
}

// New returns an empty cache.
func New[C any](c Config) *Cache[C] {
	return &Cache[C]{bytes: c.Bytes, age: c.Age, running: make(map[ID]*Call[C]), shares: make(map[Client]*share)}
}

// Client identifies the client whose share a key counts for.
type Client [sha256.Size]byte

// ID identifies a key of a client for a method. It is the first half of a SHA-256, so that no two
// are equal.
type ID [sha256.Size / 2]byte

// NewID returns the ID of a key.
func NewID(client Client, method, key string) (id ID) {
	b := make([]byte, 0, 512)
	b = append(append(append(append(b, client[:]...), method...), 0), key...)
	sum := sha256.Sum256(b)
	copy(id[:], sum[:])
	return id
}

// Call is a call that runs.
type Call[C any] struct {
	id     ID
	digest uint64
	share  *share
	call   C
	done   chan struct{}
}

// Done returns a channel that is closed when the call is settled.
func (c *Call[C]) Done() <-chan struct{} { return c.done }

// span holds the keys of calls that ended in a part of the time.
type span struct {
	until   time.Duration // on the cache's clock, when it takes no more keys
	records map[ID]record
	counts  map[*share]int // keys by client
}

// record is a call that ran.
type record struct {
	digest uint64
	reply  *reply // nil when there was no room for it
}

type reply struct {
	id    ID
	span  *span
	frame []byte
}

// Entry is what the cache knows of a call: that it ran, or that it runs.
type Entry[C any] struct {
	Ran   bool
	Frame []byte   // of the reply, read-only; nil when there was no room for it
	Call  *Call[C] // if it has not run
	First bool     // the caller of Enter must run it, and must call Settle
}

var (
	// ErrOtherRequest is the error of a key that was used with another digest.
	ErrOtherRequest = errors.New("the key was used for another request")
	// ErrFull is the error of a client that has used up its share of the room for keys.
	ErrFull = errors.New("the client has used up its share of the room for keys")
)

// Enter looks a call up and, if it is new, notes that it runs. digest distinguishes the requests
// with which a key may be used. The key counts for the client.
func (c *Cache[C]) Enter(call C, id ID, digest uint64, client Client) (e Entry[C], err error) {
	now := mono.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.ticked) > maxTick { // not every cache has a goroutine that calls Tick
		c.tickLocked(now)
	}
	if r := c.running[id]; r != nil {
		if r.digest != digest {
			return e, ErrOtherRequest
		}
		return Entry[C]{Call: r}, nil
	}
	for _, s := range c.spans {
		if r, ok := s.records[id]; ok {
			if r.digest != digest {
				return e, ErrOtherRequest
			}
			e.Ran = true
			if r.reply != nil {
				e.Frame = r.reply.frame
			}
			return e, nil
		}
	}
	share := c.admitLocked(client)
	if share == nil {
		return e, ErrFull
	}
	r := &Call[C]{id: id, digest: digest, share: share, call: call, done: make(chan struct{})}
	c.running[id] = r
	return Entry[C]{Call: r, First: true}, nil
}

// admitLocked counts one more key of the client, or returns nil if there is no room for it.
func (c *Cache[C]) admitLocked(client Client) *share {
	s, has := c.shares[client], 0
	if s != nil {
		has = s.keys
	}
	left := c.bytes - c.keys*keyBytes
	if left < keyBytes || (has+1)*keyBytes > shareFactor*left {
		return nil
	}
	if s == nil {
		s = &share{client: client}
		c.shares[client] = s
		heap.Push(&c.largest, s)
	}
	s.keys++
	c.keys++
	c.fitLocked()
	return s
}

// Settle notes that a call has ended: ran says whether it ran, with the reply in frame, of which
// the cache keeps a copy. The key of a call that did not run is free again.
func (c *Cache[C]) Settle(r *Call[C], ran bool, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(r.done)
	delete(c.running, r.id)
	if !ran {
		c.leaveLocked(r.share, 1)
		return
	}
	s := c.spanLocked()
	s.counts[r.share]++
	rec := record{digest: r.digest}
	if len(frame)+replyOverhead <= c.bytes {
		rec.reply = &reply{r.id, s, append([]byte(nil), frame...)}
		r.share.replies = append(r.share.replies, rec.reply)
		c.countReplyLocked(r.share, len(frame)+replyOverhead)
	}
	s.records[r.id] = rec
	c.fitLocked()
}

// spanLocked returns the table for new keys.
func (c *Cache[C]) spanLocked() *span {
	if n := len(c.spans); n > 0 && c.clock < c.spans[n-1].until {
		return c.spans[n-1]
	}
	s := &span{until: c.clock + c.age/spansOfAge + 1, records: make(map[ID]record), counts: make(map[*share]int)}
	c.spans = append(c.spans, s)
	return s
}

// fitLocked drops replies until all fits.
func (c *Cache[C]) fitLocked() {
	for c.replies > 0 && c.keys*keyBytes+c.replies > c.bytes {
		s := c.largest[0]
		r := s.replies[0]
		rec := r.span.records[r.id]
		rec.reply = nil
		r.span.records[r.id] = rec
		c.dropReplyLocked(s)
	}
}

// dropReplyLocked drops the oldest reply of the client.
func (c *Cache[C]) dropReplyLocked(s *share) {
	r := s.replies[0]
	s.replies[0] = nil
	s.replies = s.replies[1:]
	if len(s.replies) == 0 {
		s.replies = nil
	}
	c.countReplyLocked(s, -len(r.frame)-replyOverhead)
}

func (c *Cache[C]) countReplyLocked(s *share, bytes int) {
	c.replies += bytes
	s.bytes += bytes
	heap.Fix(&c.largest, s.place)
}

// leaveLocked takes keys off the client's share.
func (c *Cache[C]) leaveLocked(s *share, keys int) {
	c.keys -= keys
	s.keys -= keys
	if s.keys == 0 {
		heap.Remove(&c.largest, s.place)
		delete(c.shares, s.client)
	}
}

// Tick advances the clock and forgets what is too old. While it reports that the cache holds keys,
// it should be called about every second.
func (c *Cache[C]) Tick(now mono.Time) (active bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tickLocked(now)
	return len(c.spans)+len(c.running) > 0
}

func (c *Cache[C]) tickLocked(now mono.Time) {
	if c.ticked != 0 {
		c.clock += min(now.Sub(c.ticked), maxTick)
	}
	c.ticked = now
	for len(c.spans) > 0 && c.clock > c.spans[0].until+c.age+graceOfAge {
		s := c.spans[0]
		c.spans[0] = nil
		c.spans = c.spans[1:]
		for share, keys := range s.counts {
			for len(share.replies) > 0 && share.replies[0].span == s {
				c.dropReplyLocked(share)
			}
			c.leaveLocked(share, keys)
		}
	}
}

// Running returns the calls that run.
func (c *Cache[C]) Running() []C {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]C, 0, len(c.running))
	for _, r := range c.running {
		list = append(list, r.call)
	}
	return list
}

// Stats are the numbers of a Cache.
type Stats struct {
	Known   int64 // keys of calls that run or ran
	Replies int64 // replies of calls that ran
	Clients int64 // clients with keys
	Bytes   int64 // of keys and replies
}

// Stats returns the numbers of this moment.
func (c *Cache[C]) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := Stats{Known: int64(c.keys), Clients: int64(len(c.shares)), Bytes: int64(c.keys*keyBytes + c.replies)}
	for _, s := range c.shares {
		st.Replies += int64(len(s.replies))
	}
	return st
}

// share is what one client has in the cache.
type share struct {
	client  Client
	keys    int
	replies []*reply // oldest first
	bytes   int      // of replies
	place   int      // in the heap
}

// sharesByReplies is a heap whose first client has the most bytes of replies.
type sharesByReplies []*share

func (h sharesByReplies) Len() int           { return len(h) }
func (h sharesByReplies) Less(i, j int) bool { return h[i].bytes > h[j].bytes }
func (h sharesByReplies) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *sharesByReplies) Push(x any) {
	s := x.(*share)
	s.place = len(*h)
	*h = append(*h, s)
}

func (h *sharesByReplies) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return s
}

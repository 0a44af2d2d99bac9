package anser

import (
	"container/heap"
	"context"
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/anser-rpc/anser/wire"
)

// What the limits of a replyMemory mean.
const (
	keyBytes      = 72          // of a key in a table; TestMemoryOfKeys measures it
	replyOverhead = 96          // of a reply, in addition to its frame
	minReplyBytes = 4 << 10     // least value of ReplyCacheLimits.Bytes
	shareFactor   = 8           // keys of a client may take so many times the bytes that are left
	spansOfAge    = 6           // tables in which the keys of ReplyCacheLimits.Age are
	graceOfAge    = time.Minute // for which keys are kept longer than promised, as a repeat may be under way
	maxTick       = 2 * time.Second
)

// replyMemory remembers the calls with idempotency keys. A key that ran is known for the promised time: when there is no
// room for another one, the new call is refused, and no old key forgotten. Replies are dropped for room, oldest first,
// of the client whose replies take most (the longest queue). What one client may take of the room for keys depends on what
// is left (the dynamic threshold of Choudhury and Hahne, 1998), so no client can use up all of it.
//
// Its clock goes on only while the server runs. After a stop of the process, repeats that waited in a socket still find
// their keys.
type replyMemory struct {
	limits ReplyCacheLimits

	mu      sync.Mutex // guards what follows
	running map[replyID]*runningKey
	spans   []*keySpan // oldest first; the last one takes new keys
	shares  map[[sha256.Size]byte]*keyShare
	largest sharesByReplies
	keys    int   // that are known or running
	bytes   int   // of replies
	clock   int64 // nanoseconds for which the server has run
	ticked  int64 // nanotime of the last tick
}

// replyID stands for method, client and key: the first half of a SHA-256, so that no two are the same.
type replyID [sha256.Size / 2]byte

func newReplyID(ctx *callContext) (id replyID) {
	client := ctx.conn.clientKey()
	b := make([]byte, 0, 512)
	b = append(append(append(append(b, client[:]...), ctx.method.name...), 0), ctx.extras.key...)
	sum := sha256.Sum256(b)
	copy(id[:], sum[:])
	return id
}

// runningKey is a call that runs.
type runningKey struct {
	id     replyID
	digest uint64
	share  *keyShare
	ctx    *callContext
	done   chan struct{} // closed when the call is over
}

// keySpan holds the keys of calls that ended in a part of the time.
type keySpan struct {
	until   int64 // on the memory's clock, when it takes no more keys
	records map[replyID]keyRecord
	counts  map[*keyShare]int // keys by client
}

// keyRecord is a call that ran.
type keyRecord struct {
	digest uint64
	reply  *keptReply // nil when there was no room for it
}

type keptReply struct {
	id    replyID
	span  *keySpan
	frame []byte
}

// keyShare is what one client has in the memory.
type keyShare struct {
	client  [sha256.Size]byte
	keys    int
	replies []*keptReply // oldest first
	bytes   int          // of replies
	place   int          // in the heap
}

// shareOf says for whom a key is counted: the client, or the address of one that has not proven what it is.
func (c *serverConn) shareOf() [sha256.Size]byte {
	client := c.clientKey()
	if client != ([sha256.Size]byte{}) {
		return client
	}
	if at, err := netip.ParseAddrPort(addressOf(c.nc.RemoteAddr())); err == nil {
		addr := at.Addr().Unmap()
		if addr.Is6() {
			if p, err := addr.WithZone("").Prefix(64); err == nil { // a host has as many as it likes
				addr = p.Addr()
			}
		}
		ip := addr.As16()
		copy(client[:], ip[:])
	}
	return client
}

// entered is what the memory knows of a call: that it ran, or that it runs.
type entered struct {
	ran   bool
	frame []byte      // of the answer; nil when there was no room for it
	runs  *runningKey // if it has not run
	first bool        // the caller has to run it, and to settle it
}

// enter looks a call up, and notes that it runs if it is new.
func (m *replyMemory) enter(ctx *callContext, id replyID, digest uint64, client [sha256.Size]byte) (e entered, fault *Error) {
	now := nanotime()
	m.mu.Lock()
	defer m.mu.Unlock()
	if now-m.ticked > int64(maxTick) { // the server of a client's handlers has no goroutine that ticks
		m.tickLocked(now)
	}
	if r := m.running[id]; r != nil {
		if r.digest != digest {
			return e, errOtherRequest
		}
		return entered{runs: r}, nil
	}
	for _, s := range m.spans {
		if r, ok := s.records[id]; ok {
			if r.digest != digest {
				return e, errOtherRequest
			}
			e.ran = true
			if r.reply != nil {
				e.frame = r.reply.frame
			}
			return e, nil
		}
	}
	share := m.admitLocked(client)
	if share == nil {
		return e, over(limitReplies, "the client is at its share of the limit of %d bytes for idempotency keys (anser.ReplyCache)", m.limits.Bytes)
	}
	r := &runningKey{id: id, digest: digest, share: share, ctx: ctx, done: make(chan struct{})}
	m.running[id] = r
	return entered{runs: r, first: true}, nil
}

// admitLocked counts one more key of the client, or returns nil if there is no room for it.
func (m *replyMemory) admitLocked(client [sha256.Size]byte) *keyShare {
	if m.shares == nil {
		m.shares, m.running = make(map[[sha256.Size]byte]*keyShare), make(map[replyID]*runningKey)
	}
	share, has := m.shares[client], 0
	if share != nil {
		has = share.keys
	}
	left := m.limits.Bytes - m.keys*keyBytes
	if left < keyBytes || (has+1)*keyBytes > shareFactor*left {
		return nil
	}
	if share == nil {
		share = &keyShare{client: client}
		m.shares[client] = share
		heap.Push(&m.largest, share)
	}
	share.keys++
	m.keys++
	m.fitLocked()
	return share
}

// settle notes the answer of a call, of which it keeps a copy. A refused one did not run: its key is free again.
func (m *replyMemory) settle(r *runningKey, frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer close(r.done)
	delete(m.running, r.id)
	if refused(frame) {
		m.leaveLocked(r.share, 1)
		return
	}
	s := m.spanLocked()
	s.counts[r.share]++
	record := keyRecord{digest: r.digest}
	if len(frame)+replyOverhead <= m.limits.Bytes {
		record.reply = &keptReply{r.id, s, append([]byte(nil), frame...)}
		r.share.replies = append(r.share.replies, record.reply)
		m.countReplyLocked(r.share, len(frame)+replyOverhead)
	}
	s.records[r.id] = record
	m.fitLocked()
}

// spanLocked returns the table for new keys.
func (m *replyMemory) spanLocked() *keySpan {
	if n := len(m.spans); n > 0 && m.clock < m.spans[n-1].until {
		return m.spans[n-1]
	}
	s := &keySpan{until: m.clock + int64(m.limits.Age)/spansOfAge + 1, records: make(map[replyID]keyRecord), counts: make(map[*keyShare]int)}
	m.spans = append(m.spans, s)
	return s
}

// fitLocked drops replies until all fits.
func (m *replyMemory) fitLocked() {
	for m.bytes > 0 && m.keys*keyBytes+m.bytes > m.limits.Bytes {
		share := m.largest[0]
		r := share.replies[0]
		record := r.span.records[r.id]
		record.reply = nil
		r.span.records[r.id] = record
		m.dropReplyLocked(share)
	}
}

// dropReplyLocked drops the oldest reply of the client.
func (m *replyMemory) dropReplyLocked(share *keyShare) {
	r := share.replies[0]
	share.replies[0] = nil
	share.replies = share.replies[1:]
	if len(share.replies) == 0 {
		share.replies = nil
	}
	m.countReplyLocked(share, -len(r.frame)-replyOverhead)
}

func (m *replyMemory) countReplyLocked(share *keyShare, bytes int) {
	m.bytes += bytes
	share.bytes += bytes
	heap.Fix(&m.largest, share.place)
}

// leaveLocked takes keys off the client's share.
func (m *replyMemory) leaveLocked(share *keyShare, keys int) {
	m.keys -= keys
	share.keys -= keys
	if share.keys == 0 {
		heap.Remove(&m.largest, share.place)
		delete(m.shares, share.client)
	}
}

// tick lets the clock go on and forgets what is too old. It is called about every second.
func (m *replyMemory) tick(now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tickLocked(now)
}

func (m *replyMemory) tickLocked(now int64) {
	if m.ticked != 0 {
		m.clock += min(now-m.ticked, int64(maxTick))
	}
	m.ticked = now
	for len(m.spans) > 0 && m.clock > m.spans[0].until+int64(m.limits.Age)+int64(graceOfAge) {
		s := m.spans[0]
		m.spans[0] = nil
		m.spans = m.spans[1:]
		for share, keys := range s.counts {
			for len(share.replies) > 0 && share.replies[0].span == s {
				m.dropReplyLocked(share)
			}
			m.leaveLocked(share, keys)
		}
	}
}

// stop cancels what runs. Those whose connections are lost are in no other table.
func (m *replyMemory) stop() {
	m.mu.Lock()
	running := make([]*callContext, 0, len(m.running))
	for _, r := range m.running {
		running = append(running, r.ctx)
	}
	m.mu.Unlock()
	for _, ctx := range running {
		ctx.end(context.Canceled)
	}
}

func (m *replyMemory) stats() KeyStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := KeyStats{Known: int64(m.keys), Clients: int64(len(m.shares)), Bytes: int64(m.keys*keyBytes + m.bytes)}
	for _, s := range m.shares {
		st.Replies += int64(len(s.replies))
	}
	return st
}

// sharesByReplies is a heap with the client on top whose replies take most.
type sharesByReplies []*keyShare

func (h sharesByReplies) Len() int           { return len(h) }
func (h sharesByReplies) Less(i, j int) bool { return h[i].bytes > h[j].bytes }
func (h sharesByReplies) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *sharesByReplies) Push(x any) {
	s := x.(*keyShare)
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

// refused reports whether the frame says that the call did not run.
func refused(frame []byte) bool {
	h, err := wire.ParseHeader(frame)
	if err != nil || h.Type != wire.TypeError {
		return false
	}
	e, err := wire.ParseError(h.Flags, frame[wire.HeaderSize:])
	return err == nil && e.Outcome == wire.Refused
}

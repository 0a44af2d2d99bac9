package anser

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/membudget"
	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/wire"
)

// Large messages are not copied to be written; with the raw codec they are neither encoded nor
// copied after they were read. See docs/decisions/0079-large-raw-messages.md and
// docs/decisions/0082-large-encoded-messages.md.
const (
	lendFrom  = 512 << 10 // bytes of the smallest payload that is lent
	lentHead  = 16 << 10  // bytes of it that are copied, to be written with the head of the frame
	lentPiece = 1 << 20   // bytes of it that are written at once at most
)

// What is written of a loan before other frames, if the other side takes large frames in PARTs.
// While other frames come, the PARTs are smaller, and little waits in the socket.
const (
	largePart  = 512 << 10
	smallPart  = 128 << 10
	smallParts = 128 // in a row without another frame before PARTs are large again
)

// loan is the payload of a frame that is written from the memory of its sender. A connection writes
// one at a time. What is sent meanwhile waits in its buffer until the whole frame has been written,
// or else a PART of it.
type loan struct {
	before []byte // the frames before it, and the beginning of its own; nil once it was written
	split  bool   // the frame is written in PARTs
	lets   bool   // what waits is written before the next PART
	id     uint64 // of the call, if split is set
	gauge  *atomic.Int32
	reply  lentReply // the reply of which it is the payload; zero for a request

	mu      sync.Mutex // guards the fields below
	payload []byte     // what is not written yet
	due     int        // bytes of it that belong to the frame, or the PART, that is begun
	early   bool       // after them the frame ends early
	head    []byte     // of the PART that is begun: what is not written yet, in first
	first   [wire.HeaderSize]byte
}

// lentReply is the payload of a large reply that is not copied, or what is counted for one that is.
type lentReply struct {
	payload []byte             // nil: it is copied
	room    *[]byte            // the buffer of payload, which goes back to scratch; nil: it has another owner
	held    int                // bytes that the connection and its server count until they are written, or in the buffer
	backlog *membudget.Backlog // of the connection; set if held is
}

// end gives back the memory of a reply that has been written, or is not sent.
func (r *lentReply) end() {
	if r.room != nil {
		putScratch(r.room)
	}
	if r.held != 0 {
		r.backlog.Release(r.held)
	}
	*r = lentReply{}
}

// lendable returns the payload of a message if it is lent, and not encoded, else nil.
func lendable(cd codec.Codec, v any) []byte {
	if _, raw := cd.(codec.Raw); !raw {
		return nil
	}
	var b []byte
	switch v := v.(type) {
	case []byte:
		b = v
	case *[]byte:
		if v != nil {
			b = *v
		}
	}
	if len(b) < lendFrom {
		return nil
	}
	return b
}

// keepPayload makes v refer to a payload whose buffer is not needed otherwise, if v is a message of
// the raw codec that has no memory for it.
func keepPayload(cd codec.Codec, payload []byte, v any) bool {
	if _, raw := cd.(codec.Raw); !raw || len(payload) < lendFrom {
		return false
	}
	b, ok := v.(*[]byte)
	if !ok || b == nil || cap(*b) >= len(payload) {
		return false
	}
	*b = payload[:len(payload):len(payload)]
	return true
}

// lendLocked completes the frame of which buf has the head from a position on, with a payload that
// is written from where it is. No other one may be lent, and the caller makes sure that it is
// written.
func (w *writer) lendLocked(head int, payload []byte) *loan {
	n := min(lentHead, len(payload))
	l := &loan{payload: payload[n:], due: len(payload) - n}
	if first := len(w.buf) - head + n; w.splits && first <= wire.MaxFirstPart {
		l.split, l.id, l.due = true, getUint64(w.buf[head+idOffset:]), 0
		var part [wire.HeaderSize]byte
		w.buf = slices.Insert(w.buf, head, wire.AppendPartHead(part[:0], l.id, uint32(first))...)
		w.appended += wire.HeaderSize
	}
	w.appendLocked(payload[:n])
	l.before = w.buf
	w.buf, w.spare = w.spare[:0], nil
	w.data = 0
	w.lent = l
	w.releaseLocked()
	w.streams.takenLocked()
	return l
}

// awaitLoanLocked waits until no payload is lent, writing has ended, or ctx is done.
func (w *writer) awaitLoanLocked(ctx context.Context) error {
	for w.lent != nil && w.err == nil {
		if err := w.waitLocked(ctx, &w.repaid); err != nil {
			return err
		}
	}
	return w.err
}

// writeLentLocked writes what is before the payload that is lent, or some of the payload: a PART,
// or all of it.
func (w *writer) writeLentLocked() {
	l := w.lent
	w.upkeep.Stir()
	before := l.before
	if before != nil {
		w.handed = w.appended - uint64(len(w.buf))
	}
	w.mu.Unlock()
	var n int
	var err error
	if before != nil {
		n, err = w.writeOut(before)
	} else {
		n, err = w.writeLoan(l)
	}
	w.mu.Lock()
	if before != nil {
		w.handed -= uint64(len(before) - n + w.checksums.pendingBytes())
		w.peak = max(w.peak, len(before))
		if cap(w.spare) == 0 {
			w.spare = before[:0]
		}
		l.before = nil
	} else {
		w.beside += uint64(n)
	}
	l.lets = l.split
	if err != nil {
		w.failLocked(err)
	} else if l.isOver() {
		if w.limited {
			w.limited = false
			w.atOnce.LimitUnsent(0)
		}
		w.repayLocked()
	}
}

// repayLocked ends the loan: nothing refers to the memory any more.
func (w *writer) repayLocked() {
	if l := w.lent; l != nil {
		l.drop()
		l.reply.end()
		if l.gauge != nil {
			l.gauge.Store(0)
		}
		w.lent = nil
	}
	if w.repaid != nil {
		close(w.repaid)
		w.repaid = nil
	}
}

// writeLoan writes a PART of a loan, or all of it, and returns how many bytes the transport took,
// or the sealer. What may wait for the other side is copied first, so that the memory can be taken
// back meanwhile.
func (w *writer) writeLoan(l *loan) (taken int, err error) {
	scratch := bufpool.Get(bufpool.Size)
	defer bufpool.Put(scratch)
	direct, room := w.direct(), scratch
	if direct != nil {
		room = scratch[:lentHead]
	}
	l.beginPart(w.partSize(l, direct))
	for {
		var n int
		for err == nil && direct != nil {
			if n, err = l.tryWrite(direct); n == 0 {
				break
			}
			taken += n
		}
		var out []byte
		if err == nil {
			out = l.take(room)
		}
		if len(out) == 0 {
			return taken, err
		}
		n, err = w.writeOut(out)
		taken += n
	}
}

// partSize returns the size of the next PART of a loan.
func (w *writer) partSize(l *loan, to *sysconn.Writer) int {
	if w.mixed == 0 || !l.split {
		return largePart
	}
	w.mixed--
	if to != nil && !w.limited {
		w.limited = true
		to.LimitUnsent(smallPart)
	}
	return smallPart
}

// beginPart begins the next PART, if the frame is written in PARTs.
func (l *loan) beginPart(size int) {
	if !l.split {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = len(l.payload)
	if l.due >= size+wire.MinPart {
		l.due = size
	}
	l.head = wire.AppendPartHead(l.first[:0], l.id, uint32(l.due))
	l.early = l.early && l.due > 0
}

// advance counts n bytes as written. l.mu is held.
func (l *loan) advance(n int) {
	head := min(n, len(l.head))
	l.head = l.head[head:]
	l.payload = l.payload[n-head:]
	l.due -= n - head
}

// isOver reports whether everything is written.
func (l *loan) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.payload) == 0 && !l.early
}

// tryWrite writes what the connection accepts at once.
func (l *loan) tryWrite(to *sysconn.Writer) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due == 0 && len(l.head) == 0 {
		return 0, nil
	}
	n, err = to.TryWriteBoth(l.head, l.payload[:min(l.due, lentPiece)])
	l.advance(n)
	return n, err
}

// take copies the next bytes to dst.
func (l *loan) take(dst []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := copy(dst, l.head)
	n += copy(dst[n:], l.payload[:l.due])
	l.advance(n)
	return dst[:n]
}

// recall gives the memory back to its owner. What is not written yet of the frame, or of its PART,
// is copied, so that it takes as long as that, however slow the other side reads.
func (l *loan) recall() {
	l.mu.Lock()
	l.leaveOutLocked()
	left := l.payload
	l.mu.Unlock()
	if len(left) == 0 {
		return
	}
	own := codec.AppendInPieces(nil, left) // while writing goes on
	l.mu.Lock()
	defer l.mu.Unlock()
	l.payload = own[len(own)-len(l.payload):]
}

// leaveOut ends the frame of the call early, if it is written in PARTs: it was cancelled.
func (l *loan) leaveOut(id uint64) {
	if l.split && l.id == id {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.leaveOutLocked()
	}
}

func (l *loan) leaveOutLocked() {
	if len(l.payload) > l.due {
		l.payload, l.early = l.payload[:l.due], true
	}
}

// drop gives the memory back to its owner. Nothing more of it is written.
func (l *loan) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.payload, l.due, l.early = nil, 0, false
}

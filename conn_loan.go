package anser

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysconn"
)

// Large messages of the raw codec are neither copied before they are written nor after they were
// read. See docs/decisions/0079-large-raw-messages.md.
const (
	lendFrom  = 512 << 10 // bytes of the smallest payload that is lent
	lentHead  = 16 << 10  // bytes of it that are copied, to be written with the head of the frame
	lentPiece = 1 << 20   // bytes of it that are written at once at most
)

// loan is the payload of a frame that is written from the memory of its sender. A connection writes
// one at a time: whatever is sent meanwhile waits in its buffer.
type loan struct {
	before []byte // the frames before it, and the beginning of its own
	size   int    // bytes of payload that are not in before
	gauge  *atomic.Int32

	mu      sync.Mutex // held while payload is read
	payload []byte     // what is not written yet
}

// lendable returns the payload of a message if it is lent, and not copied, else nil.
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

// lendLocked completes the frame at the end of buf with a payload that is written from where it
// is. No other one may be lent, and the caller makes sure that it is written.
func (w *writer) lendLocked(payload []byte) *loan {
	n := min(lentHead, len(payload))
	w.buf = append(w.buf, payload[:n]...)
	w.appended += uint64(len(payload))
	l := &loan{before: w.buf, size: len(payload) - n, payload: payload[n:]}
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

// writeLentLocked writes the payload that is lent, and what is before it.
func (w *writer) writeLentLocked() {
	l := w.lent
	w.upkeep.Stir()
	w.handed = w.appended - uint64(len(w.buf))
	w.mu.Unlock()
	n, err := w.writeLoan(l)
	w.mu.Lock()
	w.handed -= uint64(len(l.before) + l.size - n + w.checksums.pendingBytes())
	if cap(w.spare) == 0 {
		w.spare = l.before[:0]
	}
	w.peak = max(w.peak, len(l.before))
	w.repayLocked()
	if err != nil {
		w.failLocked(err)
	}
}

// repayLocked ends the loan: nothing refers to the memory any more.
func (w *writer) repayLocked() {
	if l := w.lent; l != nil {
		l.drop()
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

// writeLoan returns how many bytes the transport took, or the sealer.
func (w *writer) writeLoan(l *loan) (taken int, err error) {
	taken, err = w.writeOut(l.before)
	defer w.writeStart.Store(0)
	scratch := bufpool.Get(bufpool.Size)
	defer bufpool.Put(scratch)
	for err == nil {
		var n int
		if n, err = w.writeLentPiece(l, scratch); n == 0 && err == nil {
			break
		}
		taken += n
	}
	return taken, err
}

// writeLentPiece writes some of a loan, or nothing if there is nothing left. What may wait for
// the other side is copied first, so that the memory can be taken back meanwhile.
func (w *writer) writeLentPiece(l *loan, scratch []byte) (n int, err error) {
	w.writeStart.Store(mono.Now())
	if w.checksums == nil {
		if !w.asked {
			w.asked, w.atOnce = true, sysconn.NewWriter(w.nc)
		}
		if w.atOnce != nil {
			if n, err = l.tryWrite(w.atOnce); n > 0 || err != nil {
				return n, err
			}
			scratch = scratch[:lentHead]
		}
	}
	return w.writeOut(l.take(scratch))
}

// tryWrite writes what the connection accepts at once.
func (l *loan) tryWrite(to *sysconn.Writer) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.payload) == 0 {
		return 0, nil
	}
	n, err = to.TryWrite(l.payload[:min(len(l.payload), lentPiece)])
	l.payload = l.payload[n:]
	return n, err
}

// take copies the next bytes to dst.
func (l *loan) take(dst []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := copy(dst, l.payload)
	l.payload = l.payload[n:]
	return dst[:n]
}

// recall gives the memory back to its owner. What is not written yet is copied, so that it takes as
// long as that, however slow the other side reads.
func (l *loan) recall() {
	l.mu.Lock()
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

// drop gives the memory back to its owner. Nothing more of it is written.
func (l *loan) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.payload = nil
}

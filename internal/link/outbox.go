package link

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// Outbox is the writing half of a connection. Messages are appended to a buffer; the first
// goroutine that flushes also writes for the ones that come meanwhile, so that many of them share
// a system call.
type Outbox struct {
	w      io.Writer
	stall  time.Duration
	broken func() // called when a write has failed

	began mono.Atomic // time at which the write of a piece began that has not ended, or 0

	mu       sync.Mutex // guards the fields below
	buf      *bytes.Buffer
	spare    *bytes.Buffer
	appended int64
	begun    int64
	written  int64
	writing  bool
	err      error
	changed  chan struct{} // closed when written or err changes; nil while there is no waiter
}

const (
	// highWater is how many bytes may wait to be written before Append waits, too. Otherwise a
	// peer that sends requests and reads no replies would fill the memory.
	highWater = 256 << 10
	// pieces is how many bytes are written under one deadline.
	pieces = 64 << 10
	// keepBuffer is the largest buffer that an idle connection keeps.
	keepBuffer = 64 << 10
)

// ErrGaveUp is returned by Append when the caller gave up before there was room.
var ErrGaveUp = errors.New("given up while the connection took nothing")

// Append calls encode to append a message, and returns its end in the stream. It waits for room,
// unless giveUp is closed. Data appended by encode stays, even if encode fails: it must itself
// remove data that must not be sent.
func (o *Outbox) Append(giveUp <-chan struct{}, encode func(*bytes.Buffer) error) (int64, error) {
	return o.append(giveUp, nil, encode)
}

// AppendHeld is Append for a message that takes memory while it waits: hold, which may be nil, is
// called once before that. Its error is returned, and nothing is appended.
func (o *Outbox) AppendHeld(hold func() error, encode func(*bytes.Buffer) error) error {
	_, err := o.append(nil, hold, encode)
	return err
}

func (o *Outbox) append(giveUp <-chan struct{}, hold func() error, encode func(*bytes.Buffer) error) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if hold != nil && o.err == nil && !o.hasRoomLocked() {
		o.mu.Unlock()
		err := hold()
		o.mu.Lock()
		if err != nil {
			return 0, err
		}
	}
	for o.err == nil && !o.hasRoomLocked() {
		changed := o.changedLocked()
		o.mu.Unlock()
		select {
		case <-changed:
			o.mu.Lock()
		case <-giveUp:
			o.mu.Lock()
			return 0, ErrGaveUp
		}
	}
	if o.err != nil {
		return 0, o.err
	}
	if o.buf == nil {
		o.buf, o.spare = o.spare, nil
		if o.buf == nil {
			o.buf = new(bytes.Buffer)
		}
	}
	before := o.buf.Len()
	err := encode(o.buf)
	o.appended += int64(o.buf.Len() - before)
	return o.appended, err
}

func (o *Outbox) hasRoomLocked() bool { return o.buf == nil || o.buf.Len() <= highWater }

// Waits returns how long the write of a piece has taken that has not ended, or 0.
func (o *Outbox) Waits() time.Duration {
	if began := o.began.Load(); began != 0 {
		return mono.Since(began)
	}
	return 0
}

func (o *Outbox) changedLocked() <-chan struct{} {
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.changed
}

func (o *Outbox) changeLocked() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// Flush writes the appended data, unless another goroutine is writing.
func (o *Outbox) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writing {
		o.writing = true
		o.writeLocked()
	}
}

// FlushLater does the same on a new goroutine, which ends when everything is written or the
// connection is closed.
func (o *Outbox) FlushLater() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writing && o.buf != nil {
		o.writing = true
		go func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.writeLocked()
		}()
	}
}

// FlushTo writes, or waits for other writers, until the stream has reached end.
func (o *Outbox) FlushTo(end int64) error {
	o.Flush()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && o.written < end {
		changed := o.changedLocked()
		o.mu.Unlock()
		<-changed
		o.mu.Lock()
	}
	if o.written >= end {
		return nil
	}
	return o.err
}

// FlushAll writes, or waits for other writers, until all data appended before is written.
func (o *Outbox) FlushAll() error {
	o.mu.Lock()
	end := o.appended
	o.mu.Unlock()
	return o.FlushTo(end)
}

// Begun returns how many bytes of the stream a write was begun for: of the others, the peer has
// received none.
func (o *Outbox) Begun() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun
}

// Err returns the error of a failed write, or nil.
func (o *Outbox) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// fail ends the writing with the error err, unless it has ended.
func (o *Outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failLocked(err)
}

func (o *Outbox) failLocked(err error) {
	if o.err == nil {
		o.err = err
		o.changeLocked()
	}
}

// writeLocked writes until the buffer is empty. It releases the lock during a write.
func (o *Outbox) writeLocked() {
	for o.buf != nil && o.err == nil {
		b := o.buf
		o.buf = nil
		o.begun += int64(b.Len())
		o.mu.Unlock()
		n, err := o.write(b.Bytes())
		o.mu.Lock()
		o.written += int64(n)
		if err != nil {
			o.failLocked(err)
			o.mu.Unlock()
			o.broken() // wakes the reader goroutine
			o.mu.Lock()
		}
		o.changeLocked()
		if b.Cap() <= keepBuffer {
			b.Reset()
			o.spare = b
		}
	}
	o.writing = false
}

// write writes in pieces, so that a slow peer has enough time for each.
func (o *Outbox) write(p []byte) (written int, err error) {
	defer o.began.Store(0)
	d, ok := o.w.(interface{ SetWriteDeadline(time.Time) error })
	if !ok || o.stall <= 0 {
		o.began.Store(mono.Now())
		return o.w.Write(p)
	}
	for len(p) > 0 && err == nil {
		var n int
		o.began.Store(mono.Now())
		d.SetWriteDeadline(time.Now().Add(o.stall))
		n, err = o.w.Write(p[:min(len(p), pieces)])
		p = p[n:]
		written += n
	}
	return written, err
}

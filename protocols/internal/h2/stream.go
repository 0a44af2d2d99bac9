package h2

import (
	"context"
	"errors"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser/internal/mono"
)

// Stream is one request and its answer. Its methods are safe for concurrent use, but the parts of
// an answer must be sent one after the other.
type Stream struct {
	conn     *Conn
	id       uint32
	declared int64 // content length of the request, or -1
	received int64 // bytes of the body; owned by the reader goroutine

	// Guarded by the connection's mu.
	receiver   Receiver
	round      int       // of the sweeper when the last part of the body arrived
	credit     int64     // bytes of DATA that may be sent
	window     int64     // bytes that the client may still send
	returned   int64     // bytes that were consumed, and not given back yet
	halfClosed bool      // the client has ended its side
	headed     bool      // the header of the answer was sent
	ended      bool      // nothing follows what is in pending
	flagged    bool      // a DATA frame has ended the answer
	closed     bool      // both sides have ended, or it was reset
	whole      int       // bytes of an answer that was given at once
	takeBy     mono.Time // when the client must have taken a whole answer; 0: it may be a slow reader
	sentRound  int       // of the sweeper when a part of pending was sent
	header     int       // bytes of the request's header that are held
	held       int       // bytes of pending that are held
	waits      bool      // it is in blocked
	pending    []byte
	trailers   []hpack.HeaderField // sent after pending if ended
	writable   chan struct{}       // closed when pending was sent or the stream has ended; or nil
}

// ErrClosed is the error of sending on a stream that has ended.
var ErrClosed = errors.New("the stream has ended")

// Consume gives n bytes of the body back to the client, which may send as much again.
func (st *Stream) Consume(n int) {
	st.conn.mu.Lock()
	st.consumeLocked(int64(n))
	st.conn.giveBackLocked(0)
	st.conn.mu.Unlock()
}

// Flush writes what was given back and sent, which otherwise leaves with the next answer.
func (st *Stream) Flush() { st.conn.Flush() }

func (st *Stream) consumeLocked(n int64) {
	c := st.conn
	c.returned += n
	st.returned += n
	if st.returned >= int64(c.config.Window)/2 && !st.halfClosed && !st.closed {
		c.out = AppendWindowUpdate(c.out, st.id, st.returned)
		st.window += st.returned
		st.returned = 0
	}
}

// giveBack gives n bytes of the connection's window back to the client.
func (c *Conn) giveBack(n int64) {
	c.mu.Lock()
	c.giveBackLocked(n)
	c.mu.Unlock()
}

func (c *Conn) giveBackLocked(n int64) {
	c.returned += n
	if c.returned >= int64(c.config.ConnWindow)/2 {
		c.out = AppendWindowUpdate(c.out, 0, c.returned)
		c.window += c.returned
		c.returned = 0
	}
}

// Header is the header or the trailers of an answer.
type Header struct {
	Status string // three digits; "" for trailers
	Type   string // content type, or ""
	Fields []hpack.HeaderField
}

// Respond sends a whole answer: the header unless it was sent, data, and trailers unless there are
// none. Several answers that are sent at about the same time leave together. It does not wait for
// credit of the client, but while too much waits to be written.
func (st *Stream) Respond(h *Header, data []byte, trailers []hpack.HeaderField) error {
	c := st.conn
	c.mu.Lock()
	for len(c.out) > maxOut && c.err == nil && !st.closed {
		c.awaitRoomLocked()
	}
	if st.closed || st.ended {
		c.mu.Unlock()
		return ErrClosed
	}
	st.ended, st.trailers = true, trailers
	st.whole = len(data)
	alone := !st.headed && len(data) == 0 && trailers == nil
	st.headerLocked(h, alone)
	switch {
	case alone:
		st.endLocked()
	case len(data) > 0 || len(st.pending) > 0:
		st.addLocked(data)
	default:
		st.finishLocked()
	}
	c.mu.Unlock()
	c.Flush()
	return nil
}

// awaitRoomLocked waits until a part of what waits to be written was written.
func (c *Conn) awaitRoomLocked() {
	if c.writing {
		c.room.Wait()
		return
	}
	c.mu.Unlock()
	c.Flush()
	c.mu.Lock()
}

// headerLocked sends the header unless it was sent. end says that nothing follows.
func (st *Stream) headerLocked(h *Header, end bool) {
	if st.headed || h == nil {
		return
	}
	st.headed = true
	c := st.conn
	c.pings.answered = true
	c.out = c.headers.append(c.out, st.id, h, end)
}

// SendHeader sends the header unless it was sent.
func (st *Stream) SendHeader(h *Header) error {
	c := st.conn
	c.mu.Lock()
	if st.closed || st.ended {
		c.mu.Unlock()
		return ErrClosed
	}
	st.headerLocked(h, false)
	c.mu.Unlock()
	c.Flush()
	return nil
}

// Send sends the header unless it was sent, and data. It waits while much of the stream waits for
// credit of the client, until ctx ends.
func (st *Stream) Send(ctx context.Context, h *Header, data []byte) error {
	c := st.conn
	c.mu.Lock()
	for {
		if st.closed || st.ended {
			c.mu.Unlock()
			return ErrClosed
		}
		if len(st.pending) < maxPending && len(c.out) <= maxOut {
			break
		}
		if len(st.pending) < maxPending {
			c.awaitRoomLocked()
			continue
		}
		if st.writable == nil {
			st.writable = make(chan struct{})
		}
		writable := st.writable
		c.mu.Unlock()
		select {
		case <-writable:
		case <-ctx.Done():
			return ctx.Err()
		}
		c.mu.Lock()
	}
	st.headerLocked(h, false)
	st.addLocked(data)
	c.mu.Unlock()
	c.Flush()
	return nil
}

// maxPending is how many bytes of a stream wait for credit before Send waits.
const maxPending = 64 << 10

// Reset ends the stream with a code. Its receiver gets no call of Reset.
func (st *Stream) Reset(code Code) {
	c := st.conn
	c.mu.Lock()
	if !st.closed {
		c.resetLocked(st.id, code)
		st.receiver = nil
		st.closeLocked()
		c.removeLocked(st)
	}
	c.mu.Unlock()
	c.Flush()
}

// answerAtOnce sends a status without a body.
func (st *Stream) answerAtOnce(status string) {
	st.Respond(&Header{Status: status}, nil, nil)
}

// addLocked sends data, as far as the client's credit goes, and keeps the rest.
func (st *Stream) addLocked(data []byte) {
	c := st.conn
	if n := int64(len(data)); len(st.pending) == 0 && n <= min(st.credit, c.credit) && len(c.out) <= maxOut {
		st.credit -= n
		c.credit -= n
		c.pings.answered = true
		last := st.ended && st.trailers == nil
		for {
			part := data[:min(len(data), MaxFrame)]
			data = data[len(part):]
			var flags byte
			if last && len(data) == 0 {
				flags, st.flagged = FlagEndStream, true
			}
			c.out = append(append(c.out, FrameHeader(len(part), FrameData, flags, st.id)...), part...)
			if len(data) == 0 {
				break
			}
		}
		if st.ended {
			st.finishLocked()
		}
		return
	}
	st.pending = append(st.pending, data...)
	st.sendLocked()
	if st.ended && !st.closed {
		st.awaitLocked()
	}
}

// awaitLocked counts a whole answer that waits for credit, and makes sure that it does not wait for
// ever.
func (st *Stream) awaitLocked() {
	c := st.conn
	if !c.sweeping {
		c.sweepLocked()
	}
	st.sentRound = c.round
	if st.whole > 0 && st.takeBy == 0 {
		st.takeBy = mono.Now().Add(c.config.Stall + time.Duration(st.whole/leastRate)*time.Second)
	}
	if st.takeBy == 0 || st.holdLocked() {
		return
	}
	c.resetLocked(st.id, EnhanceYourCalm)
	st.receiver = nil // its call has ended
	st.closeLocked()
	c.removeLocked(st)
}

const (
	// leastRate is the number of bytes a second at which a whole answer must be taken.
	leastRate = 32 << 10
	// patience is the number of rounds of the sweeper, of 10 s each, for which the rest of a
	// stream may wait for a slow reader after its handler has ended.
	patience = 30
)

// takeBefore sets when the client must have taken the answer: it is not a slow reader of a stream.
func (st *Stream) takeBefore(by time.Time) {
	st.conn.mu.Lock()
	st.takeBy = mono.Now().Add(time.Until(by))
	st.conn.mu.Unlock()
}

// unreadLocked reports whether the client does not take the rest of the answer.
func (st *Stream) unreadLocked(now mono.Time) bool {
	switch {
	case !st.ended || len(st.pending) == 0:
		return false
	case st.takeBy != 0:
		return now > st.takeBy
	}
	return st.conn.round-st.sentRound >= patience
}

// uncounted is the number of bytes of a request's header, and of an answer that waits, that are not
// counted.
const uncounted = 4 << 10

// holdHeader counts a large header, and reports whether there is room for it.
func (st *Stream) holdHeader(size int) bool {
	c := st.conn
	if c.config.Hold == nil || size <= uncounted {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.closed || !c.config.Hold(size) {
		return st.closed
	}
	st.header = size
	return true
}

// holdLocked counts what waits to be sent, and reports whether there is room for it.
func (st *Stream) holdLocked() bool {
	c := st.conn
	more := cap(st.pending) - st.held
	if c.config.Hold == nil || cap(st.pending) <= uncounted || more <= 0 {
		return true
	}
	if !c.config.Hold(more) {
		return false
	}
	st.held += more
	return true
}

// releaseLocked takes back what holdLocked has counted.
func (st *Stream) releaseLocked() {
	if st.held > 0 {
		st.conn.config.Release(st.held)
		st.held = 0
	}
}

// sendLocked sends what the client's credit allows.
func (st *Stream) sendLocked() {
	c := st.conn
	if st.closed || len(st.pending) == 0 {
		return
	}
	for len(st.pending) > 0 && st.credit > 0 && c.credit > 0 {
		n := int(min(int64(len(st.pending)), MaxFrame, st.credit, c.credit))
		var flags byte
		if n == len(st.pending) && st.ended && st.trailers == nil {
			flags, st.flagged = FlagEndStream, true
		}
		c.out = append(append(c.out, FrameHeader(n, FrameData, flags, st.id)...), st.pending[:n]...)
		st.pending = st.pending[n:]
		st.sentRound = c.round
		c.pings.answered = true
		st.credit -= int64(n)
		c.credit -= int64(n)
	}
	if len(st.pending) < maxPending && st.writable != nil {
		close(st.writable)
		st.writable = nil
	}
	switch {
	case len(st.pending) == 0:
		st.pending = nil
		st.releaseLocked()
		if st.ended {
			st.finishLocked()
		}
	case st.credit > 0 && !st.waits:
		st.waits = true
		c.blocked = append(c.blocked, st)
	}
}

// finishLocked ends the answer after all data, whose last frame has ended it unless there are
// trailers or no data.
func (st *Stream) finishLocked() {
	c := st.conn
	switch {
	case st.trailers != nil:
		c.out = c.headers.append(c.out, st.id, &Header{Fields: st.trailers}, true)
	case !st.flagged:
		c.out = append(c.out, FrameHeader(0, FrameData, FlagEndStream, st.id)...)
	}
	st.endLocked()
}

// endLocked notes that this side has sent everything. A client that is still sending is told to
// stop.
func (st *Stream) endLocked() {
	if st.closed {
		return
	}
	if !st.halfClosed {
		st.conn.resetLocked(st.id, NoError)
	}
	st.closeLocked()
	st.conn.removeLocked(st)
}

// closeLocked ends the stream, and wakes its senders.
func (st *Stream) closeLocked() {
	st.closed = true
	st.pending, st.trailers = nil, nil
	st.releaseLocked()
	if st.header > 0 {
		st.conn.config.Release(st.header)
		st.header = 0
	}
	if st.writable != nil {
		close(st.writable)
		st.writable = nil
	}
	st.conn.room.Broadcast()
}

package anser

import (
	"io"
	"slices"
	"sync"

	"github.com/anser-rpc/anser/compress"
	"github.com/anser-rpc/anser/wire"
)

// sending is the sending half of a stream.
type sending struct {
	// Keeps the pieces of two messages apart. Send and CloseSend hold it, also while they wait.
	turn    sync.Mutex
	encoded []byte // the message that is being sent; guarded by turn
	shrunk  []byte // the same message, compressed; guarded by turn

	wake chan struct{} // wakes the Send that waits

	// Guarded by the connection's mu.
	credit   int64 // bytes of DATA bodies that may still be sent
	place    place
	quantum  int    // bytes that may be appended although other streams are queued
	wants    int    // room for a frame that a queued Send needs
	keeps    int    // this stream's part of the connection's pledged or held bytes
	round    uint64 // round in which keeps is valid
	habit    int    // bytes appended since the stream was last called
	sent     uint64 // whole messages
	waitsFor sendWait
	partial  bool  // the last piece was not the end of its message
	closed   bool  // END was sent
	over     error // why nothing more can be sent
}

// place is the position of a Send that waits for its turn.
type place uint8

const (
	placeNone   place = iota
	placeQueued       // in the connection's queue
	placeCalled       // taken from the queue: its turn has come
)

// sendWait is what a Send waits for.
type sendWait uint8

const (
	waitNone   sendWait = iota
	waitCredit          // credit of the stream
	waitConn            // its turn on the connection
)

// wakeSender makes a Send that waits check again. It has no effect on one that does not wait.
func (st *stream) wakeSender() {
	select {
	case st.sending.wake <- struct{}{}:
	default:
	}
}

// send sends one message. If it returns nil, the message was appended to the write buffer.
func (st *stream) send(msg any) error {
	st.turn.Lock()
	defer st.turn.Unlock()
	payload, fault := st.encode(msg)
	if fault != nil {
		return st.told(fault)
	}
	compression := compress.NoneID
	if st.packing != nil {
		if payload, compression, fault = st.pack(payload); fault != nil {
			return st.told(fault)
		}
	}
	for {
		n, err := st.sendPiece(payload, compression, false)
		if err != nil {
			return err
		}
		if payload = payload[n:]; len(payload) == 0 {
			return nil
		}
	}
}

// encode returns the bytes of a message, which are valid while the caller holds turn and the
// message is not changed. No lock of the connection is held: the codec is the user's code.
func (st *stream) encode(msg any) (payload []byte, fault *Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, OutcomeUnknown, PhaseEncode, nil, "the codec panicked on %T: %v", msg, p)
		}
	}()
	if b, ok := msg.(*[]byte); ok && b != nil && st.raw {
		payload = *b // the message is its own encoding
	} else {
		buf, err := st.codec.Append(st.encoded[:0], msg)
		if err != nil {
			return nil, failure(InvalidArgument, OutcomeUnknown, PhaseEncode, err, "encode the message with %s: %v", st.codec.Name(), err)
		}
		payload, st.encoded = buf, buf
		if cap(buf) > maxKeptMessage {
			st.encoded = nil
		}
	}
	if uint64(len(payload)+wire.DataSize) > st.conn.peer.MaxFrame {
		return nil, failure(ResourceExhausted, OutcomeUnknown, PhaseEncode, nil,
			"the message of %d bytes is over the other side's limit of %s: %s, or send less",
			len(payload), frameLimit(st.conn.peer.MaxFrame), raiseOn(!st.side.isClient()))
	}
	return payload, nil
}

// sendPiece appends one DATA frame with as much of the message as may be sent now, and returns how
// much that was. It waits until at least some may be sent. With more, the message continues after
// these bytes.
func (st *stream) sendPiece(message []byte, compression uint8, more bool) (n int, err error) {
	s := st.conn
	w := s.w
	// If a window is smaller than the credit that sendPiece would wait for, less must do.
	least := min(int64(len(message)), keepWhole, int64(s.peer.StreamWindow)/2-s.head, int64(s.peer.ConnWindow)/2-s.head)
	least = max(least, min(int64(len(message)), 1)) + s.head
	most := min(len(message), maxPiece)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := st.awaitTurnLocked(least, wire.HeaderSize+wire.DataSize+most); err != nil {
		return 0, err
	}
	n = int(min(int64(most), st.credit-s.head, s.credit-s.head))
	var flags wire.Flags
	if n < len(message) || more {
		flags = wire.FlagMore
	}
	size := n + wire.DataSize
	at := len(w.buf)
	w.buf = wire.AppendDataHead(w.buf, st.id, flags, st.codec.ID(), compression)
	w.buf = append(w.buf, message[:n]...)
	wire.PutLength(w.buf[at:], uint32(size))
	w.appended += uint64(wire.HeaderSize + size)
	w.data += wire.HeaderSize + size
	cost := int64(n) + s.head
	st.credit -= cost
	s.credit -= cost
	st.quantum -= size
	st.habit += size
	st.useLocked(wire.HeaderSize + size)
	if st.partial = flags != 0; !st.partial {
		st.sent++
	}
	s.nextLocked()
	w.flushInBackgroundLocked()
	return n, nil
}

// awaitTurnLocked waits until need bytes of DATA may be sent and the buffer has room for a frame. A
// stream that finds others waiting, for room or for credit of the connection, queues behind them
// unless part of its quantum is left.
func (st *stream) awaitTurnLocked(need int64, frame int) error {
	s := st.conn
	for ; ; st.waitsFor = waitNone {
		if err := st.sendableLocked(); err != nil {
			st.leaveLocked()
			return err
		}
		free := s.credit >= need && s.w.data+s.pledged+s.held-st.keptLocked()+frame <= maxData
		switch {
		case st.credit < need:
			st.leaveLocked() // only a WINDOW of this stream helps
		case st.place == placeCalled && s.credit >= need: // there is room: it was pledged
			s.called--
			s.pledged -= st.keeps
			s.held += st.keeps
			st.place, st.round, st.habit = placeNone, s.round, 0
			if st.quantum <= 0 {
				st.quantum = max(st.quantum, -quantum) + quantum
			}
			return nil
		case free && (st.quantum > 0 || len(s.queue) == 0 && s.called == 0):
			return nil
		case st.place == placeCalled:
			s.called--
			s.pledged -= st.keeps
			s.queue = slices.Insert(s.queue, 0, st)
			st.place = placeQueued
		case st.place == placeNone:
			at := len(s.queue)
			if st.quantum > 0 {
				at = 0 // its turn is not over
			}
			st.useLocked(st.keptLocked())
			s.queue = slices.Insert(s.queue, at, st)
			st.place, st.wants = placeQueued, frame
		}
		if st.waitsFor = waitConn; st.credit < need {
			st.waitsFor = waitCredit
		}
		s.w.mu.Unlock()
		<-st.sending.wake
		s.w.mu.Lock()
	}
}

// claimLocked returns the room in the write buffer that is reserved for a stream when it is called:
// for a frame, or for as much as it used the last time, up to the end of its turn.
func (st *stream) claimLocked() int {
	left := st.quantum
	if left <= 0 {
		left = quantum
	}
	return max(st.wants, min(st.habit, left))
}

// keptLocked returns the room that is held for the stream. Once the buffer is taken, there is room
// for all streams.
func (st *stream) keptLocked() int {
	if st.place != placeNone || st.round != st.conn.round {
		return 0
	}
	return st.keeps
}

// useLocked uses up to n bytes of the room that is held for the stream.
func (st *stream) useLocked(n int) {
	n = min(n, st.keptLocked())
	st.keeps -= n
	st.conn.held -= n
}

// leaveLocked gives up the place of a Send that ends or that waits for something else.
func (st *stream) leaveLocked() {
	s := st.conn
	switch st.place {
	case placeQueued:
		s.queue = slices.DeleteFunc(s.queue, func(o *stream) bool { return o == st })
	case placeCalled:
		s.called--
		s.pledged -= st.keeps
		st.keeps = 0
		s.nextLocked()
	default:
		return
	}
	st.place, st.keeps = placeNone, 0
}

// sendableLocked returns why nothing more can be sent, or nil.
func (st *stream) sendableLocked() error {
	switch w := st.conn.w; {
	case st.over != nil:
		return st.over
	case st.closed:
		return st.told(failure(FailedPrecondition, OutcomeUnknown, PhaseWrite, nil, "CloseSend was called: nothing can be sent after it"))
	case w.err != nil:
		return st.told(failure(Unavailable, OutcomeUnknown, PhaseWrite, w.err, "the connection was lost: %v", w.err))
	}
	return nil
}

// closeSend half-closes the stream.
func (st *stream) closeSend() error {
	st.turn.Lock()
	defer st.turn.Unlock()
	w := st.conn.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if st.closed || st.over == io.EOF {
		return nil // in the second case the peer takes no more messages anyway
	}
	if err := st.sendableLocked(); err != nil {
		return err
	}
	st.closed = true
	before := len(w.buf)
	w.buf = wire.AppendEnd(w.buf, st.id, nil)
	w.appended += uint64(len(w.buf) - before)
	w.flushInBackgroundLocked()
	return nil
}

// overLocked ends the sending half with err, unless it has ended.
func (st *stream) overLocked(err error) {
	if st.over == nil {
		st.over = err
	}
	st.wakeSender()
}

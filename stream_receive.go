package anser

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/bufpool"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// receiving is the receiving half of a stream. The reader goroutine appends what arrives to a list
// of chunks, and Recv takes the whole list: it locks and wakes up once per batch, not per message.
//
// Chunks hold whole records; see [bufpool.Records].
type receiving struct {
	taking sync.Mutex // serializes Recv; guards the fields below

	batch  [][]byte  // chunks that were taken
	taken  int       // batch[taken:] has not been received
	chunk  []byte    // records that have not been received, before those of batch
	whole  []byte    // a message in pieces, as far as it was received
	plain  []byte    // a decompressed message
	spent  int64     // credit of received records that was not returned yet for the stream
	fresh  int64     // credit of received records that was not counted yet for the connection
	window int64     // the current window; half of it is returned at a time
	timed  mono.Time // time of the last return
	broken error     // result of every further Recv

	wake    chan struct{} // wakes the Recv that waits
	stopped atomic.Bool   // nothing more is received, not even what has arrived

	mu sync.Mutex // guards the fields below; locked after taking, never with the connection's

	in      bufpool.Records
	left    int64  // credit that the peer still has
	widened int64  // credit that the peer got beyond the initial window
	grown   int64  // part of widened that the peer got because the reader is fast
	arrived uint64 // whole messages
	unread  int64  // bytes of DATA not yet counted as read for the connection
	waits   bool   // a Recv waits on wake
	inside  bool   // the last piece was not the end of its message
	packed  uint8  // the compression of that message
	ended   bool   // nothing more arrives
	// The result of Recv after the last message once ended is set: io.EOF, or why the stream
	// failed.
	end      error
	trailers Metadata
}

// Flags of a record.
const (
	recordMore   = 1 << iota // its message continues in the next record
	recordPacked             // its message is compressed
)

// streamError returns a fault of one stream; the connection is not affected.
func streamError(code wire.Code, text string) *wire.CallError {
	return &wire.CallError{Code: code, Text: text}
}

// accept stores a DATA frame and the frames of the same stream directly behind it in the read
// buffer. A *wire.CallError fails the stream, other errors the connection. It is called by the
// reader goroutine.
func (st *stream) accept(rd *reader, h wire.Header, body []byte) error {
	st.receiving.mu.Lock()
	err := st.acceptLocked(h, body)
	for err == nil {
		var ok bool
		if h, body, ok = rd.nextData(st.id); !ok {
			break
		}
		err = st.acceptLocked(h, body)
	}
	wake := st.waits && !st.in.Empty()
	if wake {
		st.waits = false
	}
	st.receiving.mu.Unlock()
	if wake {
		st.wakeReceiver()
	}
	st.conn.giveBack()
	return err
}

func (st *stream) acceptLocked(h wire.Header, body []byte) error {
	cd, compression, payload, err := wire.ParseData(body)
	if err != nil {
		return err
	}
	if err := st.conn.arrive(h, len(payload)); err != nil {
		return err
	}
	n := int64(h.Length)
	if st.stopped.Load() { // stopped since the stream was looked up
		st.conn.read.Add(n)
		return nil
	}
	if st.left -= n; st.left < 0 {
		return wire.Errorf(wire.FlowControl, "DATA of %d bytes is %d more than the stream has credit for (anser.FlowControlWindows)", n, -st.left)
	}
	st.unread += n
	switch {
	case st.ended:
		return streamError(wire.InvalidArgument, "DATA after END")
	case cd != st.codec.ID():
		return streamError(wire.InvalidArgument, "DATA in another codec than the stream's")
	case compression != 0 && compression != st.compressionID():
		return streamError(wire.Unimplemented, "DATA with another compression than the stream's: send it with that one, or uncompressed")
	case st.inside && compression != st.packed:
		return streamError(wire.InvalidArgument, "pieces of one message with different compressions")
	}
	st.inside, st.packed = h.Flags&wire.FlagMore != 0, compression
	var flags byte
	if st.inside {
		flags = recordMore
	} else {
		st.arrived++
	}
	if compression != 0 {
		flags |= recordPacked
	}
	st.in.Append(payload, flags)
	return nil
}

// wakeReceiver makes the Recv that waits check again.
func (st *stream) wakeReceiver() {
	select {
	case st.receiving.wake <- struct{}{}:
	default:
	}
}

// recv stores the next message in msg, which is a zero value if fresh is set. After the last one it
// returns io.EOF, or the error with which the stream failed.
func (st *stream) recv(msg any, fresh bool) error {
	st.taking.Lock()
	defer st.taking.Unlock()
	if st.broken != nil {
		return st.broken
	}
	payload, packed, err := st.next()
	if err == nil && packed {
		payload, err = st.unpack(payload)
	}
	if err == nil {
		if st.handOver(payload, msg) {
			st.whole = nil
		} else if fault := st.decode(payload, msg, fresh); fault != nil {
			err = st.giveUp(fault)
		}
		if cap(st.whole) > maxKeptMessage {
			bufpool.Put(st.whole)
			st.whole = nil
		}
		if cap(st.plain) > maxKeptMessage {
			st.plain = nil
		}
	}
	if err != nil {
		st.breakOff(err)
	}
	return err
}

// breakOff records that nothing more is received, for the reason err.
func (st *stream) breakOff(err error) {
	st.broken = err
	st.batch, st.taken, st.chunk, st.whole, st.plain = nil, 0, nil, nil, nil
	st.side.received()
}

// next returns the payload of the next message, which is valid until the next call.
func (st *stream) next() (payload []byte, packed bool, err error) {
	st.whole = st.whole[:0]
	for joins := false; ; joins = true {
		payload, flags, err := st.nextPiece()
		if err != nil {
			return nil, false, err
		}
		last, packed := flags&recordMore == 0, flags&recordPacked != 0
		if len(st.whole)+len(payload) > st.limit {
			st.hit(limitMessage)
			return nil, false, st.giveUp(failure(ResourceExhausted, OutcomeUnknown, PhaseDecode, nil,
				"a message is over the limit of %d bytes: %s, or have the other side send less", st.limit, raiseOn(st.side.isClient())))
		}
		if last && !joins {
			return payload, packed, nil
		}
		if len(st.whole)+len(payload) > cap(st.whole) {
			st.whole = grown(st.whole, len(payload))
		}
		if st.whole = append(st.whole, payload...); last {
			return st.whole, packed, nil
		}
	}
}

// nextPiece returns the next piece of a message, with the flags of its record. It is valid until
// the next call.
func (st *stream) nextPiece() (payload []byte, flags byte, err error) {
	if len(st.chunk) == 0 || st.stopped.Load() {
		if err := st.fetch(); err != nil {
			return nil, 0, err
		}
	}
	payload, flags = bufpool.Cut(&st.chunk)
	st.spent += int64(len(payload)) + st.conn.head
	st.fresh += int64(len(payload)) + st.conn.head
	if enough(st.spent, st.window) {
		st.settle()
	}
	return payload, flags, nil
}

// grown returns b in a buffer with room for n more bytes. The buffers are reused: otherwise each
// large message would leave garbage of twice its size, and concurrent calls would wait for the
// garbage collector.
func grown(b []byte, n int) []byte {
	size := loadBuffer
	for size < len(b)+n {
		size *= 2
	}
	larger := bufpool.Get(size)[:len(b)]
	codec.CopyInPieces(larger, b)
	if cap(b) > 0 {
		bufpool.Put(b)
	}
	return larger
}

// fetch makes the next chunk the current one. If there is none left it takes what has arrived, or
// waits for it.
func (st *stream) fetch() error {
	s := st.conn
	for {
		if !st.stopped.Load() && st.nextChunk() {
			return nil
		}
		st.receiving.mu.Lock()
		st.reportLocked()
		if !st.in.Empty() { // false for a stream that was stopped
			st.batch, st.taken = st.in.Take(st.batch), 0
			st.receiving.mu.Unlock()
			s.giveBack()
			continue
		}
		if st.ended {
			err := st.end
			st.receiving.mu.Unlock()
			s.giveBack()
			return err
		}
		st.waits = true
		st.batch, st.taken = st.in.Take(st.batch), 0 // returns the memory of received chunks
		s.w.upkeep.Stir()                            // to release what is not needed
		st.receiving.mu.Unlock()
		s.readers.Add(1)
		s.giveBack()
		<-st.receiving.wake
		s.readers.Add(-1)
	}
}

// nextChunk advances to the next chunk of the batch, if there is one.
func (st *stream) nextChunk() bool {
	st.chunk = nil
	if st.taken == len(st.batch) {
		return false
	}
	st.chunk = st.batch[st.taken]
	st.taken++
	return true
}

// reportLocked counts what was received since the last report as read. Bytes that were counted
// already, because the stream has ended, are no longer in unread.
func (st *stream) reportLocked() {
	n := min(st.fresh, st.unread)
	st.fresh = min(st.fresh, 0)
	if n > 0 {
		st.unread -= n
		st.conn.read.Add(n)
		st.fresh = 0
	}
}

// settle returns credit of the stream, and more than was spent while its reader is fast.
func (st *stream) settle() {
	now := mono.Now()
	fast := now.Sub(st.timed) < growWithin
	st.timed = now
	st.receiving.mu.Lock()
	st.reportLocked()
	n := st.spent
	st.spent = 0
	ended := st.ended
	if !ended {
		if fast && st.conn.grow {
			n += st.growLocked()
		}
		st.left += n
		st.window = st.conn.streamWindow + st.widened
	}
	st.receiving.mu.Unlock()
	if ended {
		st.conn.giveBack()
	} else {
		st.conn.giveBackTo(st, n)
	}
}

// growLocked doubles the window, up to maxGrown, and returns by how much it grew. With the initial
// window, two fast sides take turns: the sender waits until its credit comes back, and then the
// reader waits for the data sent with it. With 1 MiB both run at once, at twice the speed.
func (st *stream) growLocked() int64 {
	window := st.conn.streamWindow + st.widened
	n := min(window, maxGrown-window)
	if n <= 0 || st.conn.grown.Add(n) > maxGrownOfConn {
		if n > 0 {
			st.conn.grown.Add(-n)
		}
		return 0
	}
	st.widened += n
	st.grown += n
	return n
}

// widen gives the peer n bytes of credit beyond the window.
func (st *stream) widen(n int64) {
	st.receiving.mu.Lock()
	if n <= 0 || st.ended || n > wire.MaxWindow-st.widened-st.conn.streamWindow {
		st.receiving.mu.Unlock()
		return
	}
	st.widened += n
	st.left += n
	st.receiving.mu.Unlock()
	st.conn.giveBackTo(st, n)
}

// handOver makes the buffer of a large message that is its own encoding the memory of msg. It does
// not if msg has enough room, or if msg would hold on to much more memory than it needs. The buffer
// would not be kept anyway, so a copy would need new memory.
func (st *stream) handOver(payload []byte, msg any) bool {
	size := cap(st.whole)
	if !st.raw || size <= maxKeptMessage || len(payload) < size-size/8 || &payload[0] != &st.whole[:1][0] {
		return false
	}
	b, ok := msg.(*[]byte)
	if !ok || b == nil || cap(*b) >= len(payload) {
		return false
	}
	*b = payload[:len(payload):len(payload)] // the rest of the buffer belongs to other messages
	return true
}

// decode decodes the payload into the message.
func (st *stream) decode(payload []byte, msg any, fresh bool) (fault *Error) {
	defer func() {
		if p := recover(); p != nil {
			fault = failure(Internal, OutcomeUnknown, PhaseDecode, nil, "the codec panicked on a message of type %T: %v", msg, p)
		}
	}()
	if err := unmarshal(st.codec, payload, msg, fresh); err != nil {
		return failure(st.badMessage, OutcomeUnknown, PhaseDecode, err, "decode the message with %s: %v", st.codec.Name(), err)
	}
	return nil
}

// finish ends both halves: the peer has ended the stream, or the connection was lost. err is nil
// after success. What has arrived can still be received.
func (st *stream) finish(err error, trailers Metadata) {
	if err == nil {
		err = io.EOF
	}
	w := st.conn.w
	w.mu.Lock()
	st.overLocked(err)
	w.mu.Unlock()
	st.endReceiving(err, trailers)
}

// stop ends both halves from this side. What has not been received is dropped.
func (st *stream) stop(err error) {
	w := st.conn.w
	w.mu.Lock()
	st.overLocked(err)
	w.mu.Unlock()
	st.stopped.Store(true)
	st.endReceiving(err, nil)
}

// endReceiving notes that nothing more arrives. All credit of the connection is returned at once,
// as there may never be another Recv. What can still be received is bounded by the stream's window.
func (st *stream) endReceiving(err error, trailers Metadata) {
	st.receiving.mu.Lock()
	if !st.ended {
		st.ended, st.end, st.trailers = true, err, trailers
		st.conn.grown.Add(-st.grown)
	}
	if st.stopped.Load() {
		if st.end == io.EOF {
			st.end = err // messages before the end are no longer received
		}
		st.in = bufpool.Records{}
	}
	st.conn.read.Add(st.unread)
	st.unread = 0
	wake := st.waits
	st.waits = false
	st.receiving.mu.Unlock()
	if wake {
		st.wakeReceiver()
	}
	st.conn.giveBack()
}

// hasEnded reports whether nothing more arrives.
func (st *stream) hasEnded() bool {
	st.receiving.mu.Lock()
	defer st.receiving.mu.Unlock()
	return st.ended
}

// halfClosed handles the END of a caller. A *wire.CallError fails the stream.
//
// This side may have stopped to receive before: the handler's deadline has passed, or the stream
// that this one is forwarded to has ended, and the handler has not returned. The caller cannot know
// that, and its END is discarded as its DATA is.
func (st *stream) halfClosed() error {
	st.receiving.mu.Lock()
	again, inside := st.ended, st.inside
	discard := st.stopped.Load()
	st.receiving.mu.Unlock()
	switch {
	case discard:
		return nil
	case again:
		return streamError(wire.InvalidArgument, "a second END")
	case inside:
		return streamError(wire.InvalidArgument, "END in the middle of a message")
	}
	st.endReceiving(io.EOF, nil)
	return nil
}

// put stores the first message of a stream, which came in its REQUEST and has used no credit.
func (st *stream) put(payload []byte, packed bool) {
	var flags byte
	if packed {
		flags = recordPacked
	}
	st.in.Append(payload, flags)
	st.arrived = 1
	st.spent = -int64(len(payload)) - st.conn.head
	st.fresh = st.spent
}

// isInside reports whether the last piece that arrived was not the end of its message.
func (st *stream) isInside() bool {
	st.receiving.mu.Lock()
	defer st.receiving.mu.Unlock()
	return st.inside
}

// trim releases memory that an idle stream does not need, and reports whether it may have more to
// release in a second.
func (st *stream) trim() (again bool) {
	st.receiving.mu.Lock()
	defer st.receiving.mu.Unlock()
	return st.in.Trim()
}

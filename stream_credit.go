package anser

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/wire"
)

const (
	// maxPiece is the size of the payload of one DATA frame. A large message shares the connection,
	// piece by piece, with everything else that is sent there.
	maxPiece = 16 << 10

	// maxData is the limit of the DATA frames that wait to be written on a connection, in bytes. It
	// bounds the delay of what is appended after them, fits a processor's cache, and goes out in
	// one write.
	maxData = maxWrite

	// quantum is the number of bytes that a stream may append before waiting streams get their
	// turn.
	quantum = 16 << 10

	// A window grows by itself, up to maxGrown, while half of the initial window is received within
	// growWithin. All windows of a connection together grow by at most maxGrownOfConn.
	growWithin     = 100 * time.Millisecond
	maxGrown       = 1 << 20
	maxGrownOfConn = 8 << 20

	// keepWhole is the credit that a sender waits for rather than split a smaller message.
	keepWhole = 4 << 10
)

// streams is the state that the streams of a connection share, on either side: the credit of both
// directions, and the order of the streams that wait to send.
type streams struct {
	w            *writer
	peer         *wire.Settings
	streamWindow int64 // initial credit of the peer per stream
	window       int64 // initial credit of the peer for the connection
	head         int64 // bytes of a DATA frame besides its payload, which use up credit too
	grow         bool  // whether the windows of streams grow

	// Sending; guarded by w.mu.
	credit int64
	queue  []*stream // streams that wait for room in the write buffer or for credit, in FIFO order
	called int       // streams that were taken from the queue and have not sent since

	// Room in the write buffer that is reserved for the streams whose turn it is. Otherwise streams
	// whose goroutines are running take it, and a stream with large pieces, or one that is slow to
	// wake up, gets less than its share.
	pledged int    // for the called streams
	held    int    // for what streams that have sent may append before the buffer is taken
	round   uint64 // of the buffer; a new round begins when it is taken

	// Receiving. The credit returned so far is the growth of allowed.
	arrived atomic.Int64 // bytes of DATA received; written by the reader goroutine
	allowed atomic.Int64 // bytes of DATA that may arrive in total
	read    atomic.Int64 // bytes of DATA that were received by streams, or discarded
	grown   atomic.Int64 // bytes by which the windows of streams have grown by themselves
	readers atomic.Int32 // streams whose Recv waits for a message
	wasted  int          // useless frames of the peer; owned by the reader goroutine
}

// init sets the initial credit of both sides. It is called before the first stream.
func (s *streams) init(own, peer *wire.Settings, grow, checksums bool) {
	s.peer, s.grow, s.head = peer, grow, wire.DataSize
	if checksums {
		s.head += wire.ChecksumSize
	}
	s.streamWindow, s.window = int64(own.StreamWindow), int64(own.ConnWindow)
	s.credit = int64(peer.ConnWindow)
	s.allowed.Store(s.window)
}

// nextLocked calls the first stream of the queue, if it can send.
func (s *streams) nextLocked() {
	if len(s.queue) == 0 || s.credit <= 0 {
		return
	}
	st := s.queue[0]
	if st.keeps = st.claimLocked(); s.w.data+s.pledged+s.held+st.keeps > maxData {
		return
	}
	s.pledged += st.keeps
	s.queue = slices.Delete(s.queue, 0, 1)
	st.place = placeCalled
	s.called++
	st.wakeSender()
}

// takenLocked notes that the write buffer was taken.
func (s *streams) takenLocked() {
	s.held = 0
	s.round++
	s.nextLocked()
}

// grant adds credit that the peer has returned for st, or for the connection if st is nil.
func (s *streams) grant(st *stream, credit uint32) *wire.Error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	sum := &s.credit
	if st != nil {
		sum = &st.credit
	}
	if *sum += int64(credit); *sum > wire.MaxWindow {
		return wire.Errorf(wire.FlowControl, "a WINDOW of %d bytes makes the credit %d, at most %d", credit, *sum, int64(wire.MaxWindow))
	}
	if st != nil {
		st.wakeSender()
	} else {
		s.nextLocked()
	}
	return nil
}

// admit returns an error if there is no credit for the DATA frame h. It is called by the reader
// goroutine.
func (s *streams) admit(h wire.Header) error {
	sum := s.arrived.Load() + int64(h.Length)
	if allowed := s.allowed.Load(); sum > allowed {
		return wire.Errorf(wire.FlowControl, "%d bytes of DATA on a connection with a credit of %d (anser.FlowControlWindows)", sum, allowed)
	}
	return nil
}

// arrive counts the DATA frame h, whatever its stream. It is called by the reader goroutine.
func (s *streams) arrive(h wire.Header, payload int) error {
	if err := s.admit(h); err != nil {
		return err
	}
	s.arrived.Add(int64(h.Length))
	if payload == 0 && h.Flags&wire.FlagMore != 0 {
		return s.waste(h)
	}
	return nil
}

// ignore handles a frame for a stream that is not open; opened means that it once was. It is called
// by the reader goroutine.
func (s *streams) ignore(h wire.Header, body []byte, opened bool) error {
	switch h.Type {
	case wire.TypeData:
		_, _, payload, err := wire.ParseData(body)
		if err != nil {
			return err
		}
		if err := s.arrive(h, len(payload)); err != nil {
			return err
		}
		s.read.Add(int64(h.Length))
		s.giveBack()
	case wire.TypeEnd:
		if _, err := wire.ParseEnd(h.Flags, body); err != nil {
			return err
		}
	case wire.TypeWindow:
		_, err := wire.ParseWindow(h.ID, body)
		// A *wire.CallError would fail the stream, which has ended.
		if broken, ok := err.(*wire.Error); ok {
			return broken
		}
	}
	if !opened {
		return s.waste(h)
	}
	return nil
}

const maxWasted = 100

func (s *streams) waste(h wire.Header) error {
	if s.wasted++; s.wasted > maxWasted {
		return wire.Errorf(wire.Flood, "more than %d frames that belong to no stream or move nothing, the last one a %s", maxWasted, h.Type)
	}
	return nil
}

// due returns how much of the connection's credit can be returned: what was read. If that is little
// while a reader waits, it is everything that has arrived, whether read or not: the bytes that fill
// the connection may belong to streams with slow readers, and those must not delay other streams.
// What a stream holds is bounded by its own window.
func (s *streams) due() int64 {
	returned := s.allowed.Load() - s.window
	if s.readers.Load() > 0 {
		return s.arrived.Load() - returned
	}
	return s.read.Load() - returned
}

// enough reports whether the credit is worth a frame.
func enough(credit, window int64) bool { return credit > 0 && credit >= window/2 }

// giveBack returns credit of the connection if enough is due.
func (s *streams) giveBack() {
	if !enough(s.due(), s.window) {
		return
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.giveBackLocked()
}

func (s *streams) giveBackLocked() {
	n := s.due()
	if !enough(n, s.window) || s.w.err != nil {
		return
	}
	s.allowed.Add(n)
	s.returnLocked(0, n)
}

// giveBackTo returns n bytes of credit of a stream.
func (s *streams) giveBackTo(st *stream, n int64) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.err != nil {
		return
	}
	s.returnLocked(st.id, n)
	if n := s.due(); n > 0 { // in the same write
		s.allowed.Add(n)
		s.returnLocked(0, n)
	}
}

// returnLocked appends WINDOW frames for n bytes, which may exceed what one frame can return.
func (s *streams) returnLocked(id uint64, n int64) {
	for n > 0 {
		part := min(n, wire.MaxWindow)
		before := len(s.w.buf)
		s.w.buf = wire.AppendWindow(s.w.buf, id, uint32(part))
		s.w.appended += uint64(len(s.w.buf) - before)
		n -= part
	}
	s.w.flushInBackgroundLocked()
}

// returned handles a WINDOW frame for st, or for the connection if st is nil. A *wire.CallError
// fails the stream.
func (s *streams) returned(st *stream, h wire.Header, body []byte) error {
	credit, err := wire.ParseWindow(h.ID, body)
	if err != nil {
		return err
	}
	if broken := s.grant(st, credit); broken != nil {
		return broken
	}
	return nil
}

package anser

import (
	"io"
	"sync"
)

// forwardStream forwards the messages of two streams to each other until up has ended, and returns
// nil after success. down was opened by the peer, and up by this side in its name. Messages are
// forwarded in the pieces in which they arrive, and stay encoded. A piece is taken only when the
// other stream has taken the one before, so the credit of one side depends on how fast the other
// reads: what waits here is bounded by the window of each stream.
func forwardStream(down, up *stream) error {
	var failed error // why down cannot be forwarded
	var wg sync.WaitGroup
	wg.Go(func() {
		err := down.forwardTo(up)
		if err == nil {
			up.closeSendOfClient() // an error is that of the stream
			return
		}
		failed = err
		up.side.refuse(up, asFault(err))
	})
	err := up.forwardTo(down)
	if err != nil {
		up.side.refuse(up, asFault(err)) // unless it has ended, it cannot be forwarded
	}
	down.stopReceiving(errRelayed)
	wg.Wait()
	if err != nil && failed != nil && failed != errRelayed && !asFault(err).Remote {
		return failed
	}
	return err
}

var errRelayed = &Error{Code: Unavailable, Outcome: OutcomeUnknown, Message: "the stream has ended on the other side"}

// asFault returns a copy of an error of a stream.
func asFault(err error) *Error {
	if e, ok := err.(*Error); ok { // the errors of a stream are not wrapped
		same := *e
		return &same
	}
	return failure(Unavailable, OutcomeUnknown, PhaseNone, err, "%v", err)
}

// forwardTo forwards all messages to another stream, and returns nil when the last one was
// forwarded.
func (st *stream) forwardTo(to *stream) error {
	st.taking.Lock()
	defer st.taking.Unlock()
	to.turn.Lock()
	defer to.turn.Unlock()
	repack := false // whether the other side does not have the compression
	if st.packing != nil {
		repack = to.compressionID() != st.compressionID()
	}
	for size := 0; ; {
		payload, flags, err := st.nextPiece()
		if err != nil {
			st.breakOff(err)
			return endOf(err)
		}
		more, compression := flags&recordMore != 0, uint8(0)
		if size += len(payload); size > st.limit {
			st.hit(limitMessage)
			return st.giveUp(failure(ResourceExhausted, OutcomeUnknown, PhaseDecode, nil, "a message is over the limit of %d bytes of what forwards it (anser.MaxMessage)", st.limit))
		}
		switch packed := flags&recordPacked != 0; {
		case packed && repack:
			if st.whole = append(st.whole, payload...); more {
				continue
			}
			if payload, err = st.unpack(st.whole); err != nil {
				return err
			}
			st.whole = st.whole[:0]
		case packed:
			compression = st.compressionID()
		}
		if !more {
			size = 0
		} else if len(payload) == 0 {
			continue // it would move nothing
		}
		if err := to.forwardPiece(payload, compression, more); err != nil {
			return err
		}
	}
}

// forwardPiece sends a piece of a message, in several if necessary.
func (st *stream) forwardPiece(payload []byte, compression uint8, more bool) error {
	for {
		n, err := st.sendPiece(payload, compression, more)
		if err != nil {
			return err
		}
		if payload = payload[n:]; len(payload) == 0 {
			return nil
		}
	}
}

// endOf returns nil for the regular end of a stream.
func endOf(err error) error {
	if err == io.EOF { // the errors of a stream are not wrapped
		return nil
	}
	return err
}

// stopReceiving ends the receiving half from this side. What has not been received is dropped.
func (st *stream) stopReceiving(why error) {
	st.stopped.Store(true)
	st.endReceiving(why, nil)
}

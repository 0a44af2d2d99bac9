package anser

import (
	"errors"

	"github.com/anser-rpc/anser/wire"
)

// What a client's connection does with the frames of streams.

// streamFrame handles DATA, END and WINDOW.
func (c *callerHalf) streamFrame(h wire.Header, body []byte) error {
	c.pings = pingLimit{}
	if h.ID == 0 {
		return c.streams.returned(nil, h, body)
	}
	c.mu.Lock()
	k, last := c.open.Get(h.ID), c.lastID
	if k == nil && h.Type == wire.TypeEnd {
		c.answeredLocked(h.ID)
	}
	c.mu.Unlock()
	if k == nil {
		return c.streams.ignore(h, body, h.ID <= last)
	}
	st := k.stream
	var err error
	switch {
	case st == nil:
		return c.notAStream(k, h, body)
	case h.Type == wire.TypeData:
		err = st.accept(c.role.reader, h, body)
	case h.Type == wire.TypeEnd:
		return c.endOf(k, h, body)
	default:
		err = c.streams.returned(st, h, body)
	}
	if fault, ok := err.(*wire.CallError); ok {
		code := Internal
		if fault.Code == wire.Unimplemented {
			code = Unimplemented
		}
		st.side.refuse(st, failure(code, OutcomeUnknown, PhaseWait, fault, "the server broke the protocol: %v", fault))
		return nil
	}
	return err
}

// notAStream fails a call for which a frame of a stream came. Its handler may still run, so it is
// cancelled.
func (c *callerHalf) notAStream(k *call, h wire.Header, body []byte) error {
	err := c.streams.ignore(h, body, true)
	if taken, _ := c.cancel(k, false); taken {
		k.failed = failure(Internal, OutcomeUnknown, PhaseWait, err, "the server broke the protocol: %s for a call that is not a stream", h.Type)
		k.over()
	}
	return err
}

// withdraw removes k from the open calls. It fails if k was already removed.
func (c *callerHalf) withdraw(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.open.Take(k.id) != nil
	c.busy.Store(int32(c.open.Len()))
	return taken
}

// endOf handles the END of a stream.
func (c *callerHalf) endOf(k *call, h wire.Header, body []byte) error {
	block, err := wire.ParseEnd(h.Flags, body)
	if err == nil && !c.withdraw(k) {
		return nil // cancelled just now
	}
	if err != nil {
		return err
	}
	st := k.stream
	if st.isInside() {
		st.ends(failure(Internal, OutcomeUnknown, PhaseWait, nil, "the server broke the protocol: END in the middle of a message"), nil)
		return nil
	}
	return st.endsWith(nil, block)
}

// streamAnswered handles a REPLY or ERROR for a stream, which has been taken out of what is open.
// An error is one of the connection.
func (c *callerHalf) streamAnswered(st *stream, a *arrived) error {
	if a.kind == wire.TypeReply {
		c.replied(st)
		return nil
	}
	e, err := wire.ParseError(a.flags, a.body)
	if err != nil {
		st.ends(failure(Internal, OutcomeUnknown, PhaseWait, err, "the server broke the protocol: %v", err), nil)
		return err
	}
	return st.endsWith(remoteError(&e), e.Metadata)
}

// refuseReply fails the stream to which a REPLY begins to arrive in PARTs, and reports whether the
// id is that of a stream. The rest of the REPLY is not read into memory then.
func (c *callerHalf) refuseReply(id uint64) bool {
	c.mu.Lock()
	k := c.open.Get(id)
	c.mu.Unlock()
	if k == nil || k.stream == nil {
		return false
	}
	if c.withdraw(k) {
		c.replied(k.stream)
	}
	return true
}

// replied fails a stream to which a REPLY came.
func (c *callerHalf) replied(st *stream) {
	c.giveUp(st.id)
	st.ends(failure(Internal, OutcomeUnknown, PhaseWait, nil, "the server broke the protocol: REPLY to a stream"), nil)
}

// endsWith ends a stream as the server did: with err, or with success if that is nil, and with
// trailers. An error is one of the connection.
func (st *stream) endsWith(e *Error, block []byte) error {
	if block == nil {
		st.ends(e, nil)
		return nil
	}
	_, err := wire.ParseMetadata(block, wire.DefaultSettings().MaxMetadata)
	var fault *wire.CallError
	switch {
	case err == nil:
		st.ends(e, metadataOf(block))
	case errors.As(err, &fault) && e != nil:
		st.ends(e, nil) // as with a call, the error counts
	default:
		st.ends(failure(Internal, OutcomeUnknown, PhaseDecode, err, "the trailers of the stream: %v", err), nil)
	}
	if fault != nil {
		return nil //nits:ignore nilerr it fails the stream and not the connection
	}
	return err
}

// callerSide is the side of a stream that opened it.
type callerSide interface {
	// over accounts for a stream that was removed from the open calls of its connection; err is nil
	// after success.
	over(st *stream, err *Error)
}

// ends ends a stream of a client that was removed from the open calls of its connection; e is nil
// after success.
func (st *stream) ends(e *Error, trailers Metadata) {
	var err error
	if e != nil {
		err = st.told(e)
	}
	st.finish(err, trailers)
	st.side.(callerSide).over(st, e)
}

// trimStreams has idle streams give up memory, and reports whether some may give up more in a
// second.
func (c *callerHalf) trimStreams() (again bool) {
	if c.streaming.Load() == 0 {
		return false
	}
	var open []*stream
	c.mu.Lock()
	c.open.Each(func(k *call) {
		if k.stream != nil {
			open = append(open, k.stream)
		}
	})
	c.mu.Unlock()
	for _, st := range open {
		again = st.trim() || again
	}
	return again
}

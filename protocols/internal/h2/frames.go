package h2

import (
	"encoding/binary"
	"slices"
)

// frame handles a frame. An error ends the connection.
func (c *Conn) frame(kind, flags byte, id uint32, p []byte) error {
	if !c.settled && kind != FrameSettings {
		return connError(ProtocolError, "the first frame is not SETTINGS")
	}
	if c.blockID != 0 && (kind != FrameContinuation || id != c.blockID) {
		return connError(ProtocolError, "the header of stream %d is not complete", c.blockID)
	}
	switch kind {
	case FrameData:
		return c.data(flags, id, p)
	case FrameHeaders:
		return c.begin(flags, id, p)
	case FrameContinuation:
		return c.continuation(flags, id, p)
	case FrameReset:
		return c.reset(id, p)
	case FrameWindowUpdate:
		return c.windowUpdate(id, p)
	}
	if !c.controls.allow() {
		return connError(EnhanceYourCalm, "too many frames without requests")
	}
	switch kind {
	case FramePriority:
		return c.priority(id, p)
	case FrameSettings:
		return c.settings(flags, id, p)
	case FramePing:
		return c.ping(flags, id, p)
	case FrameGoAway:
		if id != 0 {
			return connError(ProtocolError, "GOAWAY on stream %d", id)
		}
		if len(p) < 8 {
			return connError(FrameSizeError, "GOAWAY of %d bytes", len(p))
		}
	case FramePushPromise:
		return connError(ProtocolError, "PUSH_PROMISE from a client")
	}
	return nil
}

// Unpad returns the payload of a frame without its padding.
func Unpad(flags byte, p []byte) ([]byte, error) {
	if flags&FlagPadded == 0 {
		return p, nil
	}
	if len(p) == 0 {
		return nil, connError(FrameSizeError, "a padded frame is empty")
	}
	n := int(p[0])
	if n >= len(p) {
		return nil, connError(ProtocolError, "padding of %d bytes in a frame of %d", n, len(p))
	}
	return p[1 : len(p)-n], nil
}

// data handles DATA.
func (c *Conn) data(flags byte, id uint32, p []byte) error {
	if id == 0 {
		return connError(ProtocolError, "DATA on stream 0")
	}
	body, err := Unpad(flags, p)
	if err != nil {
		return err
	}
	end := flags&FlagEndStream != 0
	if len(body) == 0 && !end && !c.controls.allow() {
		return connError(EnhanceYourCalm, "too many empty DATA frames")
	}
	c.mu.Lock()
	if c.window -= int64(len(p)); c.window < 0 {
		c.mu.Unlock()
		return connError(FlowControlError, "DATA beyond the window of the connection")
	}
	st := c.streams[id]
	if st == nil || st.halfClosed {
		c.giveBackLocked(int64(len(p)))
		c.mu.Unlock()
		if id > c.lastID {
			return connError(ProtocolError, "DATA on stream %d, which is idle", id)
		}
		return c.onClosed(id, len(p))
	}
	if st.window -= int64(len(p)); st.window < 0 {
		c.giveBackLocked(int64(len(p)))
		c.mu.Unlock()
		return c.fail(st, streamError(FlowControlError, "DATA beyond the window of the stream"))
	}
	if padding := len(p) - len(body); padding > 0 {
		st.consumeLocked(int64(padding))
	}
	st.halfClosed, st.round = end, c.round
	st.received += int64(len(body))
	receiver := st.receiver
	if receiver == nil { // it was answered already
		c.giveBackLocked(int64(len(body)))
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	if st.declared >= 0 && (st.received > st.declared || end && st.received != st.declared) {
		c.giveBack(int64(len(body)))
		return c.fail(st, streamError(ProtocolError, "the body has another size than the content length"))
	}
	receiver.Data(body, end)
	return nil
}

// onClosed handles DATA of size bytes on a stream that has ended. What was on its way when the
// stream was refused is paid for by its size: a client must not lose its connection for it.
func (c *Conn) onClosed(id uint32, size int) error {
	if size < smallData && !c.controls.allow() {
		return connError(EnhanceYourCalm, "too many frames on streams that have ended")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answerLocked(resetFrame(id, StreamClosed))
}

// smallData is the size in bytes below which DATA costs more than it carries.
const smallData = 256

// reset handles RST_STREAM.
func (c *Conn) reset(id uint32, p []byte) error {
	switch {
	case id == 0:
		return connError(ProtocolError, "RST_STREAM on stream 0")
	case len(p) != 4:
		return connError(FrameSizeError, "RST_STREAM of %d bytes", len(p))
	case id > c.lastID:
		return connError(ProtocolError, "RST_STREAM on stream %d, which is idle", id)
	case !c.resets.allow():
		return connError(EnhanceYourCalm, "too many streams were reset")
	}
	c.mu.Lock()
	st := c.streams[id]
	var receiver Receiver
	if st != nil {
		receiver = st.receiver
		st.closeLocked()
		c.removeLocked(st)
	}
	c.mu.Unlock()
	if receiver != nil {
		receiver.Reset(streamError(Code(binary.BigEndian.Uint32(p)), "the client has reset the stream"))
	}
	return nil
}

// fail ends a stream because of a fault of the client, for the reader goroutine. It counts as a
// reset by the client: otherwise a client that makes the server reset its streams could start as
// many calls as it likes.
func (c *Conn) fail(st *Stream, fault *StreamError) error {
	if !c.resets.allow() {
		return connError(EnhanceYourCalm, "too many streams were reset")
	}
	c.cut(st, fault)
	return nil
}

// cut ends a stream that the client does not go on with.
func (c *Conn) cut(st *Stream, fault *StreamError) {
	c.mu.Lock()
	receiver := st.receiver
	if st.closed {
		receiver = nil
	} else {
		c.resetLocked(st.id, fault.Code)
		st.closeLocked()
		c.removeLocked(st)
	}
	c.mu.Unlock()
	if receiver != nil {
		receiver.Reset(fault)
	}
}

// removeLocked forgets a stream that has ended.
func (c *Conn) removeLocked(st *Stream) {
	if c.streams[st.id] != st {
		return
	}
	delete(c.streams, st.id)
	c.drainedLocked()
	c.opened--
	if st.waits {
		st.waits = false
		c.blocked = slices.DeleteFunc(c.blocked, func(o *Stream) bool { return o == st })
	}
}

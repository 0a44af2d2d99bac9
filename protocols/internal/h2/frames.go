package h2

import (
	"encoding/binary"
	"slices"

	"github.com/anser-rpc/anser/internal/mono"
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

// begin handles HEADERS.
func (c *Conn) begin(flags byte, id uint32, p []byte) error {
	if id == 0 || id%2 == 0 {
		return connError(ProtocolError, "HEADERS on stream %d", id)
	}
	p, err := Unpad(flags, p)
	if err != nil {
		return err
	}
	depends := uint32(0)
	if flags&FlagPriority != 0 {
		if len(p) < 5 {
			return connError(FrameSizeError, "HEADERS without its priority")
		}
		depends, p = binary.BigEndian.Uint32(p)&MaxWindow, p[5:]
	}
	c.mu.Lock()
	st := c.streams[id]
	c.mu.Unlock()
	switch {
	case st == nil && id <= c.lastID && !slices.Contains(c.recent[:], id):
		return connError(ProtocolError, "stream %d after stream %d", id, c.lastID)
	case st == nil && id <= c.lastID:
		return connError(StreamClosed, "HEADERS on stream %d, which has ended", id)
	case st != nil && st.halfClosed:
		return connError(StreamClosed, "HEADERS on stream %d, which the client has ended", id)
	case st != nil && flags&FlagEndStream == 0:
		return connError(ProtocolError, "a second header on stream %d that does not end it", id)
	}
	c.block = headerBlock{r: &Request{ContentLength: -1}, trailers: st != nil, most: c.config.MaxHeader}
	if depends == id {
		c.block.bad = "the stream depends on itself"
	}
	c.blockID, c.blockFlags, c.blockParts = id, flags, 1
	if id > c.lastID {
		c.lastID = id
		c.recent[c.recentAt%len(c.recent)] = id
		c.recentAt++
	}
	return c.headerPart(flags, p)
}

// continuation handles CONTINUATION.
func (c *Conn) continuation(flags byte, id uint32, p []byte) error {
	if c.blockID == 0 {
		return connError(ProtocolError, "CONTINUATION on stream %d without a header", id)
	}
	if c.blockParts++; c.blockParts > maxParts {
		return connError(EnhanceYourCalm, "a header of more than %d frames", maxParts)
	}
	return c.headerPart(flags, p)
}

// headerPart decodes a part of a header.
func (c *Conn) headerPart(flags byte, p []byte) error {
	if _, err := c.decoder.Write(p); err != nil {
		return connError(CompressionError, "the header: %v", err)
	}
	if c.block.size > 4*c.config.MaxHeader {
		return connError(EnhanceYourCalm, "a header of more than %d bytes", 4*c.config.MaxHeader)
	}
	if flags&FlagEndHeaders == 0 {
		return nil
	}
	if err := c.decoder.Close(); err != nil {
		return connError(CompressionError, "the header: %v", err)
	}
	id := c.blockID
	c.blockID = 0
	end := c.blockFlags&FlagEndStream != 0
	if c.block.trailers {
		return c.trailers(id)
	}
	return c.open(id, end)
}

// trailers handles the trailers of a request, which end it.
func (c *Conn) trailers(id uint32) error {
	c.mu.Lock()
	st := c.streams[id]
	if st == nil {
		c.mu.Unlock()
		return nil
	}
	st.halfClosed = true
	receiver := st.receiver
	c.mu.Unlock()
	switch {
	case c.block.check() != "" || st.declared >= 0 && st.received != st.declared:
		return c.fail(st, streamError(ProtocolError, "the trailers are wrong"))
	case receiver != nil:
		receiver.Data(nil, true)
	}
	return nil
}

// open handles a complete header of a request.
func (c *Conn) open(id uint32, end bool) error {
	if bad := c.block.check(); bad != "" {
		if !c.controls.allow() {
			return connError(EnhanceYourCalm, "too many malformed requests")
		}
		c.mu.Lock()
		c.resetLocked(id, ProtocolError)
		c.mu.Unlock()
		return nil
	}
	r := c.block.r
	c.mu.Lock()
	if c.ended {
		defer c.mu.Unlock()
		return c.err
	}
	if c.closing && id > c.finalID || c.opened >= c.config.MaxStreams {
		c.resetLocked(id, RefusedStream)
		c.mu.Unlock()
		if !c.controls.allow() {
			return connError(EnhanceYourCalm, "too many streams over the limit")
		}
		return nil
	}
	st := &Stream{conn: c, id: id, credit: c.peerWindow, window: int64(c.config.Window), declared: r.ContentLength, halfClosed: end}
	c.streams[id] = st
	c.opened++
	c.lastOpened = id
	st.round = c.round
	if !end && !c.sweeping {
		c.sweepLocked()
	}
	c.mu.Unlock()
	if c.block.size > c.config.MaxHeader {
		st.answerAtOnce("431")
		return nil
	}
	if end && r.ContentLength > 0 {
		return c.fail(st, streamError(ProtocolError, "the body has another size than the content length"))
	}
	if !st.holdHeader(c.block.size) {
		return c.fail(st, streamError(EnhanceYourCalm, "the server has no memory for the header"))
	}
	receiver := c.config.Request(st, r, end)
	c.mu.Lock()
	gone := st.closed
	st.receiver = receiver
	c.mu.Unlock()
	if gone && receiver != nil {
		receiver.Reset(streamError(Cancel, "the stream has ended"))
	}
	return nil
}

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

// priority handles PRIORITY, which has no meaning here.
func (c *Conn) priority(id uint32, p []byte) error {
	switch {
	case id == 0:
		return connError(ProtocolError, "PRIORITY on stream 0")
	case len(p) != 5:
		return connError(FrameSizeError, "PRIORITY of %d bytes", len(p))
	case binary.BigEndian.Uint32(p)&MaxWindow == id:
		return connError(ProtocolError, "stream %d depends on itself", id)
	}
	return nil
}

// settings handles SETTINGS.
func (c *Conn) settings(flags byte, id uint32, p []byte) error {
	switch {
	case id != 0:
		return connError(ProtocolError, "SETTINGS on stream %d", id)
	case flags&FlagAck != 0 && len(p) != 0, len(p)%6 != 0:
		return connError(FrameSizeError, "SETTINGS of %d bytes", len(p))
	case flags&FlagAck != 0:
		return nil
	}
	c.settled = true
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; len(p) > 0; p = p[6:] {
		v := binary.BigEndian.Uint32(p[2:])
		switch binary.BigEndian.Uint16(p) {
		case SettingTableSize:
			c.headers.limit(v)
		case SettingPush:
			if v > 1 {
				return connError(ProtocolError, "ENABLE_PUSH is %d", v)
			}
		case SettingWindow:
			if v > MaxWindow {
				return connError(FlowControlError, "INITIAL_WINDOW_SIZE is %d", v)
			}
			if err := c.changeWindowLocked(int64(v)); err != nil {
				return err
			}
		case SettingMaxFrame:
			if v < MaxFrame || v >= 1<<24 {
				return connError(ProtocolError, "MAX_FRAME_SIZE is %d", v)
			}
		}
	}
	if err := c.answerLocked(FrameHeader(0, FrameSettings, FlagAck, 0)); err != nil {
		return err
	}
	for _, st := range c.streams { // after the acknowledgment, which says that the windows are new
		st.sendLocked()
	}
	return nil
}

// changeWindowLocked applies a new initial window to all streams.
func (c *Conn) changeWindowLocked(window int64) error {
	delta := window - c.peerWindow
	c.peerWindow = window
	for _, st := range c.streams {
		if st.credit += delta; st.credit > MaxWindow {
			return connError(FlowControlError, "INITIAL_WINDOW_SIZE makes a window larger than allowed")
		}
	}
	return nil
}

// answerLocked appends a frame that is cheap to ask for. A client that keeps asking and does not
// read the answers loses the connection.
func (c *Conn) answerLocked(frame []byte) error {
	if len(c.out) > maxOut {
		return connError(EnhanceYourCalm, "the client does not read the answers to its control frames")
	}
	c.out = append(c.out, frame...)
	return nil
}

// ping handles PING.
func (c *Conn) ping(flags byte, id uint32, p []byte) error {
	switch {
	case id != 0:
		return connError(ProtocolError, "PING on stream %d", id)
	case len(p) != 8:
		return connError(FrameSizeError, "PING of %d bytes", len(p))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if flags&FlagAck != 0 {
		if string(p) == drainPing {
			c.refuseLocked()
		}
		return nil
	}
	if !c.pings.note(mono.Now(), c.leastPingLocked()) {
		return connError(EnhanceYourCalm, tooManyPings)
	}
	return c.answerLocked(append(FrameHeader(8, FramePing, FlagAck, 0), p...))
}

// windowUpdate handles WINDOW_UPDATE.
func (c *Conn) windowUpdate(id uint32, p []byte) error {
	if len(p) != 4 {
		return connError(FrameSizeError, "WINDOW_UPDATE of %d bytes", len(p))
	}
	n := int64(binary.BigEndian.Uint32(p) & MaxWindow)
	if id > c.lastID {
		return connError(ProtocolError, "WINDOW_UPDATE on stream %d, which is idle", id)
	}
	if n < 64 && !c.controls.allow() {
		return connError(EnhanceYourCalm, "too many small WINDOW_UPDATE frames")
	}
	c.mu.Lock()
	if id == 0 {
		defer c.mu.Unlock()
		if n == 0 {
			return connError(ProtocolError, "WINDOW_UPDATE of 0 bytes")
		}
		if c.credit += n; c.credit > MaxWindow {
			return connError(FlowControlError, "the window of the connection is larger than allowed")
		}
		for len(c.blocked) > 0 && c.credit > 0 {
			st := c.blocked[0]
			c.blocked = c.blocked[1:]
			st.waits = false
			st.sendLocked()
		}
		return nil
	}
	st := c.streams[id]
	if st == nil {
		c.mu.Unlock()
		return nil
	}
	if n == 0 || st.credit+n > MaxWindow {
		c.mu.Unlock()
		code := FlowControlError
		if n == 0 {
			code = ProtocolError
		}
		return c.fail(st, streamError(code, "the window update is wrong"))
	}
	st.credit += n
	st.sendLocked()
	c.mu.Unlock()
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

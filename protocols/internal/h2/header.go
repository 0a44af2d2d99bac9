package h2

import (
	"encoding/binary"
	"slices"
)

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

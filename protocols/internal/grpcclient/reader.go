package grpcclient

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/wire"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func connError(code h2.Code, format string, args ...any) error {
	return &h2.ConnError{Code: code, Text: fmt.Sprintf(format, args...)}
}

// next returns the next whole frame of the server.
func (c *Conn) next() (kind, flags byte, id uint32, p []byte, ok bool, err error) {
	have := c.buf[c.r:c.w]
	if len(have) < h2.HeaderSize {
		return 0, 0, 0, nil, false, nil
	}
	size := int(have[0])<<16 | int(have[1])<<8 | int(have[2])
	kind, flags, id = have[3], have[4], binary.BigEndian.Uint32(have[5:])&h2.MaxWindow
	if size > h2.MaxFrame {
		return 0, 0, 0, nil, false, connError(h2.FrameSizeError, "a frame of %d bytes", size)
	}
	if len(have) < h2.HeaderSize+size {
		return 0, 0, 0, nil, false, nil
	}
	c.r += h2.HeaderSize + size
	return kind, flags, id, have[h2.HeaderSize : h2.HeaderSize+size], true, nil
}

// handleLocked handles all frames that have been read.
func (c *Conn) handleLocked() {
	for c.err == nil {
		kind, flags, id, p, ok, err := c.next()
		if err == nil && !ok {
			return
		}
		if err == nil {
			err = c.frameLocked(kind, flags, id, p)
		}
		if err != nil {
			c.faultLocked(err)
		}
	}
}

// maxControls is the number of frames in a row that are not part of an answer: they cost the client
// more than the server.
const maxControls = 10_000

// frameLocked handles a frame of the server.
func (c *Conn) frameLocked(kind, flags byte, id uint32, p []byte) error {
	if c.block.id != 0 && (kind != h2.FrameContinuation || id != c.block.id) {
		return connError(h2.ProtocolError, "the header of stream %d is not complete", c.block.id)
	}
	if c.controls++; c.controls > maxControls {
		return connError(h2.EnhanceYourCalm, "too many frames without an answer")
	}
	switch kind {
	case h2.FrameData:
		return c.dataLocked(flags, id, p)
	case h2.FrameHeaders:
		p, err := h2.Unpad(flags, p)
		if err != nil {
			return err
		}
		if flags&h2.FlagPriority != 0 {
			if len(p) < 5 {
				return connError(h2.FrameSizeError, "HEADERS without its priority")
			}
			p = p[5:]
		}
		if id%2 == 0 || id > c.lastID {
			return connError(h2.ProtocolError, "HEADERS on stream %d, which is idle", id)
		}
		c.block = block{id: id, end: flags&h2.FlagEndStream != 0, parts: 1}
		return c.headerPartLocked(flags, p)
	case h2.FrameContinuation:
		if c.block.id == 0 {
			return connError(h2.ProtocolError, "CONTINUATION without a header")
		}
		if c.block.parts++; c.block.parts > maxParts {
			return connError(h2.EnhanceYourCalm, "a header of more than %d frames", maxParts)
		}
		return c.headerPartLocked(flags, p)
	case h2.FrameReset:
		if len(p) != 4 || id == 0 || id > c.lastID {
			return connError(h2.ProtocolError, "a malformed RST_STREAM")
		}
		c.wasResetLocked(id, h2.Code(binary.BigEndian.Uint32(p)))
	case h2.FrameSettings:
		return c.settingsLocked(flags, id, p)
	case h2.FramePushPromise:
		return connError(h2.ProtocolError, "PUSH_PROMISE, which was switched off")
	case h2.FramePing:
		return c.serverPingLocked(flags, id, p)
	case h2.FrameGoAway:
		if len(p) < 8 || id != 0 {
			return connError(h2.FrameSizeError, "a malformed GOAWAY")
		}
		c.goAwayLocked(binary.BigEndian.Uint32(p) & h2.MaxWindow)
	case h2.FrameWindowUpdate:
		return c.windowUpdateLocked(id, p)
	}
	return nil
}

// settingsLocked handles SETTINGS.
func (c *Conn) settingsLocked(flags byte, id uint32, p []byte) error {
	switch {
	case id != 0:
		return connError(h2.ProtocolError, "SETTINGS on stream %d", id)
	case flags&h2.FlagAck != 0:
		return nil
	case len(p)%6 != 0:
		return connError(h2.FrameSizeError, "SETTINGS of %d bytes", len(p))
	}
	grown, window := false, c.initial
	for ; len(p) > 0; p = p[6:] {
		v := binary.BigEndian.Uint32(p[2:])
		switch binary.BigEndian.Uint16(p) {
		case h2.SettingTableSize:
			c.headers.limit(v)
		case h2.SettingMaxStreams:
			c.most = int(min(v, maxQueued))
			grown = true
		case h2.SettingWindow:
			if v > h2.MaxWindow {
				return connError(h2.FlowControlError, "INITIAL_WINDOW_SIZE is %d", v)
			}
			window, grown = int64(v), true // the streams learn only the last one, since there may be many of both
		case h2.SettingMaxFrame:
			if v < h2.MaxFrame || v >= 1<<24 {
				return connError(h2.ProtocolError, "MAX_FRAME_SIZE is %d", v)
			}
		}
	}
	c.out = append(c.out, h2.FrameHeader(0, h2.FrameSettings, h2.FlagAck, 0)...)
	if grown {
		delta := window - c.initial
		c.initial = window
		for _, st := range c.streams {
			if st.credit += delta; st.credit > h2.MaxWindow {
				return connError(h2.FlowControlError, "INITIAL_WINDOW_SIZE makes a window larger than allowed")
			}
			c.sendLocked(st)
		}
		c.openQueuedLocked()
	}
	return c.checkOutLocked()
}

// checkOutLocked returns the error of a server that asks for answers and does not read them.
func (c *Conn) checkOutLocked() error {
	if len(c.out) > 16*maxOut {
		return connError(h2.EnhanceYourCalm, "the server does not read the answers to its frames")
	}
	return nil
}

func (c *Conn) serverPingLocked(flags byte, id uint32, p []byte) error {
	if len(p) != 8 || id != 0 {
		return connError(h2.FrameSizeError, "a malformed PING")
	}
	if flags&h2.FlagAck == 0 {
		c.out = append(append(c.out, h2.FrameHeader(8, h2.FramePing, h2.FlagAck, 0)...), p...)
		return c.checkOutLocked()
	}
	if c.pinging {
		c.pinging = false
		c.up = wire.AppendPing(c.up, wire.TypePong, c.waiting)
	}
	return nil
}

// goAwayLocked handles GOAWAY: streams after the last one that the server serves did not run.
func (c *Conn) goAwayLocked(last uint32) {
	c.finalID = min(c.finalID, last)
	c.leaveLocked()
	for id, st := range c.streams {
		if id > c.finalID {
			c.refuseLocked(st.call, st.oneway, wire.Unavailable, "the server is going away and did not run the call")
			c.removeLocked(st)
		}
	}
	for _, st := range c.queue {
		if c.calls[st.call] == st {
			c.refuseLocked(st.call, st.oneway, wire.Unavailable, "the server is going away and did not run the call")
			delete(c.calls, st.call)
			c.discardLocked(st)
		}
	}
	c.queue = nil
	c.endedLocked()
}

func (c *Conn) windowUpdateLocked(id uint32, p []byte) error {
	if len(p) != 4 {
		return connError(h2.FrameSizeError, "WINDOW_UPDATE of %d bytes", len(p))
	}
	n := int64(binary.BigEndian.Uint32(p) & h2.MaxWindow)
	if id == 0 {
		if c.credit += n; n == 0 || c.credit > h2.MaxWindow {
			return connError(h2.FlowControlError, "a WINDOW_UPDATE of %d bytes", n)
		}
		c.unblockLocked()
		return c.checkOutLocked()
	}
	st := c.streams[id]
	if st == nil {
		if id > c.lastID {
			return connError(h2.ProtocolError, "WINDOW_UPDATE on stream %d, which is idle", id)
		}
		return nil
	}
	if st.credit += n; n == 0 || st.credit > h2.MaxWindow {
		c.failLocked(st, exchange.Unexpected("the server breaks HTTP/2: a WINDOW_UPDATE of "+itoa(n)+" bytes"))
		return nil
	}
	c.sendLocked(st)
	return c.checkOutLocked()
}

// wasResetLocked handles RST_STREAM.
func (c *Conn) wasResetLocked(id uint32, code h2.Code) {
	st := c.streams[id]
	if st == nil {
		return
	}
	if st.final != nil { // the server wants nothing more; its status counts, and the client still takes messages
		st.clientEnded, st.sentEnd = true, true
		c.dropLocked(st)
		return
	}
	e := &wire.ErrorBody{Code: wire.InternalError, Outcome: wire.OutcomeUnknown, Message: "the server has reset the stream: " + code.String()}
	switch code {
	case h2.RefusedStream:
		e.Code, e.Outcome = wire.Unavailable, wire.Refused
	case h2.Cancel:
		if e.Code = wire.Canceled; st.deadline != 0 && mono.Now() >= st.deadline {
			e.Code = wire.DeadlineExceeded
		}
	case h2.EnhanceYourCalm:
		e.Code = wire.ResourceExhausted
	case h2.InadequateSecurity:
		e.Code = wire.PermissionDenied
	}
	if !st.oneway {
		c.up = wire.AppendError(c.up, st.call, 0, e)
	}
	c.removeLocked(st)
	c.endedLocked()
}

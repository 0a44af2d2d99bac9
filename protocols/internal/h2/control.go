package h2

import (
	"encoding/binary"

	"github.com/anser-rpc/anser/internal/mono"
)

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

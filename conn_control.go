package anser

import (
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// control handles the frames that concern the connection and are the same in both directions. Any
// other frame is one that the peer, "client" or "server", must not send. control appends the
// answer to out, after the answers to earlier frames. drain reports a DRAIN, which the caller
// handles.
func (c *conn) control(out []byte, h wire.Header, body []byte, peer string) (answers []byte, drain bool, err error) {
	switch h.Type {
	case wire.TypePing:
		v, err := wire.ParsePing(body)
		if err == nil {
			err = c.pings.note(mono.Now(), c.minPing)
		}
		if err == nil {
			out = wire.AppendPing(out, wire.TypePong, v)
		}
		return out, false, err
	case wire.TypePong:
		if _, err := wire.ParsePing(body); err != nil {
			return out, false, err
		}
		if c.pinged.Swap(0) == 0 { // it answers nothing
			return out, false, c.pings.note(mono.Now(), c.minPing)
		}
		return out, false, nil
	case wire.TypeDrain:
		_, err := wire.ParseDrain(body)
		return out, err == nil, err
	case wire.TypeClose:
		return out, false, closedByPeer(body)
	}
	if h.Type < wire.FirstSkippable {
		return out, false, wire.Errorf(wire.BadFrame, "%s frame from a %s", h.Type, peer)
	}
	return out, false, nil
}

// answerAtOnce is post for an answer that is cheap to ask for. A peer that keeps asking and does
// not read the answers loses the connection.
func (c *conn) answerAtOnce(frame []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.buf) > 2*maxBuffered {
		return wire.Errorf(wire.Flood, "frames that must be answered, from a peer that does not read the answers")
	}
	c.postLocked(frame)
	return nil
}

package grpcclient

import (
	"encoding/binary"

	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/wire"
)

// receiveLocked takes a part of the messages of the server. It returns the fault of the server that
// ends the call.
func (c *Conn) receiveLocked(st *stream, p []byte) *wire.ErrorBody {
	if !st.isStream {
		if st.in == nil {
			st.in = c.bufferLocked()
		}
		st.in = append(st.in, p...)
		c.giveBackLocked(int64(len(p)))
		c.consumeLocked(st, int64(len(p)))
		if len(st.in) < prefixSize {
			return nil
		}
		size := int64(binary.BigEndian.Uint32(st.in[1:]))
		if size+wire.ReplySize > int64(c.client.MaxFrame) {
			return exchange.ReplyTooLarge(size)
		}
		if int64(len(st.in)) > prefixSize+size {
			return exchange.Cardinality("the server has sent more than one message for a unary call")
		}
		return nil
	}
	if st.held || len(st.in) > 0 {
		st.in = append(st.in, p...)
		p = st.in
	}
	if st.held {
		return nil // until the client returns credit
	}
	rest, fault := c.forwardLocked(st, p)
	st.in = append(st.in[:0], rest...)
	return fault
}

// bufferLocked returns a buffer for a message.
func (c *Conn) bufferLocked() []byte {
	if n := len(c.free); n > 0 {
		b := c.free[n-1]
		c.free = c.free[:n-1]
		return b[:0]
	}
	return make([]byte, 0, 1<<10)
}

func (c *Conn) recycleLocked(st *stream) {
	if cap(st.in) > 0 && cap(st.in) <= smallBuffer && len(c.free) < 64 {
		c.free = append(c.free, st.in)
	}
}

// forwardLocked forwards the messages of a stream, as far as the client accepts them, and returns
// the rest.
func (c *Conn) forwardLocked(st *stream, p []byte) (rest []byte, fault *wire.ErrorBody) {
	st.held = false
	for {
		begins := st.left == 0
		body := p
		if begins {
			if len(p) < prefixSize {
				return p, nil
			}
			size := int64(binary.BigEndian.Uint32(p[1:]))
			switch {
			case size+wire.DataSize > int64(c.client.MaxFrame):
				return nil, exchange.ReplyTooLarge(size)
			case p[0] > 1 || p[0] == 1 && (!st.gzip || st.compression != exchange.GzipNumber):
				return nil, exchange.Unexpected("the server has sent a message in a compression that was not agreed on")
			}
			st.packed = p[0]
			body = p[prefixSize:]
			st.left = int(size)
		}
		n := min(st.left, len(body))
		room := min(st.upCredit, c.upCredit) - wire.DataSize
		if room < 0 || room == 0 && st.left > 0 {
			if begins {
				st.left = 0
			}
			c.holdLocked(st)
			return p, nil
		}
		n = min(n, int(room))
		if n == 0 && st.left > 0 { // nothing of the message has arrived
			if begins {
				st.left = 0
			}
			return p, nil
		}
		var flags wire.Flags
		if n < st.left {
			flags = wire.FlagMore
		}
		at := len(c.up)
		c.up = wire.AppendDataHead(c.up, st.call, flags, st.codec, st.packed*exchange.GzipNumber)
		c.up = append(c.up, body[:n]...)
		wire.PutLength(c.up[at:], uint32(wire.DataSize+n))
		st.left -= n
		st.upCredit -= int64(wire.DataSize + n)
		c.upCredit -= int64(wire.DataSize + n)
		st.overhead += wire.DataSize
		c.overhead += wire.DataSize
		if begins {
			c.giveBackLocked(prefixSize)
			c.consumeLocked(st, prefixSize)
		}
		p = body[n:]
	}
}

// holdLocked makes a stream wait for credit of the client.
func (c *Conn) holdLocked(st *stream) {
	st.held = true
	if !st.listed {
		st.listed = true
		c.held = c.listLocked(c.held, st)
	}
}

// deliverLocked continues after the client has returned credit.
func (c *Conn) deliverLocked(st *stream) {
	if c.calls[st.call] != st {
		return
	}
	st.held = false
	if len(st.in) > 0 {
		rest, fault := c.forwardLocked(st, st.in)
		st.in = append(st.in[:0], rest...)
		if fault != nil {
			c.failLocked(st, fault)
			return
		}
	}
	if st.final == nil || st.held {
		return
	}
	if fault := c.completeLocked(st); fault != nil && st.final.Code == wire.OK {
		st.final = fault
	}
	c.finishLocked(st)
}

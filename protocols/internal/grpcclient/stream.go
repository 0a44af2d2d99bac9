package grpcclient

import (
	"encoding/binary"
	"slices"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/protocols/internal/h2"
	"github.com/anser-rpc/anser/wire"
)

// stream is a call. It is guarded by the lock of its connection.
type stream struct {
	call               uint64 // its id for the client
	id                 uint32 // its id in HTTP/2; 0: it waits in the queue
	oneway, isStream   bool
	accepts            bool // the client reads a message with headers first
	method             *method
	codec, compression uint8
	deadline           mono.Time // 0: none
	fields             []byte    // of the header, while it waits in the queue

	// To the server.
	credit      int64
	pending     []byte // waits for credit
	joined      []byte // parts of a message that is not complete
	clientEnded bool
	sentEnd     bool
	waits       bool  // it is in blocked
	owed        int64 // bytes of pending that are the client's credit
	back        int64 // have left, and were not returned to the client yet

	// From the server.
	window   int64 // bytes that the server may still send
	returned int64 // consumed, and not given back to the server yet
	headed   bool  // the header has arrived
	gzip     bool  // the server may compress
	in       []byte
	left     int // bytes of a message that the client gets the beginning of
	packed   uint8
	upCredit int64 // bytes that the client accepts
	overhead int64
	held     bool // the rest of in waits for credit of the client
	listed   bool // it is in the connection's list of streams that wait
	headers  map[string][]string
	final    *wire.ErrorBody // how it has ended, while messages wait for credit of the client
	trailers map[string][]string
}

const prefixSize = 5 // of a message: a flag, and the length

// messageLocked sends a message.
func (c *Conn) messageLocked(st *stream, payload []byte, plain bool) {
	var prefix [prefixSize]byte
	if !plain {
		prefix[0] = 1
	}
	binary.BigEndian.PutUint32(prefix[1:], uint32(len(payload)))
	size := int64(prefixSize + len(payload))
	if st.id == 0 || len(st.pending) > 0 || size > min(st.credit, c.credit) {
		c.pending += int(size)
		st.pending = append(append(st.pending, prefix[:]...), payload...)
		c.sendLocked(st)
		return
	}
	st.credit -= size
	c.credit -= size
	var flags byte
	first := payload[:min(len(payload), h2.MaxFrame-prefixSize)]
	payload = payload[len(first):]
	if len(payload) == 0 && st.clientEnded {
		flags, st.sentEnd = h2.FlagEndStream, true
	}
	c.out = append(append(c.out, h2.FrameHeader(prefixSize+len(first), h2.FrameData, flags, st.id)...), prefix[:]...)
	c.out = append(c.out, first...)
	for len(payload) > 0 {
		part := payload[:min(len(payload), h2.MaxFrame)]
		if payload = payload[len(part):]; len(payload) == 0 && st.clientEnded {
			flags, st.sentEnd = h2.FlagEndStream, true
		}
		c.out = append(append(c.out, h2.FrameHeader(len(part), h2.FrameData, flags, st.id)...), part...)
	}
	c.settleOwedLocked(st)
}

// sendLocked sends what the server's credit allows.
func (c *Conn) sendLocked(st *stream) {
	if st.id == 0 || st.sentEnd {
		return
	}
	for len(st.pending) > 0 && st.credit > 0 && c.credit > 0 {
		n := int(min(int64(len(st.pending)), h2.MaxFrame, st.credit, c.credit))
		var flags byte
		if n == len(st.pending) && st.clientEnded {
			flags, st.sentEnd = h2.FlagEndStream, true
		}
		c.out = append(append(c.out, h2.FrameHeader(n, h2.FrameData, flags, st.id)...), st.pending[:n]...)
		st.pending = st.pending[n:]
		st.credit -= int64(n)
		c.credit -= int64(n)
		c.lessPendingLocked(n)
	}
	switch {
	case len(st.pending) == 0:
		st.pending = nil
		if st.clientEnded && !st.sentEnd {
			st.sentEnd = true
			c.out = append(c.out, h2.FrameHeader(0, h2.FrameData, h2.FlagEndStream, st.id)...)
		}
	case st.credit > 0 && !st.waits:
		st.waits = true
		c.blocked = c.listLocked(c.blocked, st)
	}
	c.settleOwedLocked(st)
}

func (c *Conn) lessPendingLocked(n int) {
	was := c.pending
	if c.pending -= n; was > maxPending && c.pending <= maxPending {
		c.room.Broadcast()
	}
}

// unblockLocked sends after the server has given credit to the connection.
func (c *Conn) unblockLocked() {
	for n := len(c.blocked); n > 0 && c.credit > 0; n-- {
		st := c.blocked[0]
		c.blocked = c.blocked[1:]
		if st.waits = false; c.calls[st.call] == st {
			c.sendLocked(st)
		}
	}
	if len(c.blocked) == 0 {
		c.blocked = nil
	}
}

// settleOwedLocked returns the credit of what has left.
func (c *Conn) settleOwedLocked(st *stream) {
	if more := st.owed - int64(len(st.pending)); more > 0 {
		st.owed -= more
		c.returnLocked(st, more)
	}
}

// returnLocked returns credit for DATA to the client; st may be nil.
func (c *Conn) returnLocked(st *stream, n int64) {
	if c.sent += n; c.sent >= connWindow/4 {
		c.up = wire.AppendWindow(c.up, 0, uint32(c.sent))
		c.sent = 0
	}
	if st == nil {
		return
	}
	if st.back += n; st.back >= sendWindow/4 {
		c.up = wire.AppendWindow(c.up, st.call, uint32(st.back))
		st.back = 0
	}
}

// listLocked appends a call to a list of calls that wait. Before the list grows, the calls in it
// that have ended leave it: they may be any number, since what they wait for may never come.
func (c *Conn) listLocked(list []*stream, st *stream) []*stream {
	if len(list) == cap(list) && len(list) >= 64 {
		list = slices.DeleteFunc(list, func(old *stream) bool { return c.calls[old.call] != old })
		if len(list) > cap(list)/2 {
			list = slices.Grow(list, cap(list))
		}
	}
	return append(list, st)
}

// discardLocked returns what a call that has ended still holds.
func (c *Conn) discardLocked(st *stream) {
	c.dropLocked(st)
	if st.isStream && len(st.in) > 0 {
		c.giveBackLocked(int64(len(st.in)))
	}
	c.recycleLocked(st)
	st.in = nil
}

// dropLocked drops what waits for the server.
func (c *Conn) dropLocked(st *stream) {
	c.lessPendingLocked(len(st.pending))
	if st.owed > 0 {
		c.returnLocked(nil, st.owed)
		st.owed = 0
	}
	st.pending, st.joined, st.fields = nil, nil, nil
}

// removeLocked forgets a call.
func (c *Conn) removeLocked(st *stream) {
	delete(c.calls, st.call)
	delete(c.streams, st.id)
	c.discardLocked(st)
}

// resetLocked ends a call for the server.
func (c *Conn) resetLocked(st *stream, code h2.Code) {
	c.out = binary.BigEndian.AppendUint32(append(c.out, h2.FrameHeader(4, h2.FrameReset, 0, st.id)...), uint32(code))
	c.removeLocked(st)
}

// giveBackLocked lets the server send as many bytes on the connection as were consumed.
func (c *Conn) giveBackLocked(n int64) {
	if c.returned += n; c.returned >= connWindow/4 {
		c.out = h2.AppendWindowUpdate(c.out, 0, c.returned)
		c.window += c.returned
		c.returned = 0
	}
}

// consumeLocked lets the server send as many bytes on a stream as were consumed.
func (c *Conn) consumeLocked(st *stream, n int64) {
	if st.returned += n; st.returned >= int64(c.client.StreamWindow)/4 && st.final == nil {
		c.out = h2.AppendWindowUpdate(c.out, st.id, st.returned)
		st.window += st.returned
		st.returned = 0
	}
}

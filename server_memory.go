package anser

import (
	"fmt"
	"math"
	"runtime/debug"
	"sync"

	"github.com/anser-rpc/anser/internal/sysmem"
	"github.com/anser-rpc/anser/wire"
)

// MaxMemory sets how many bytes of requests the server holds at once: large requests that arrive,
// wait or run, with their replies. A request that would exceed it is refused with ResourceExhausted
// while it arrives, and its bytes are discarded. The large replies that a client leaves unread on a
// connection may take half of it; further ones are dropped, and their calls fail with
// ResourceExhausted.
//
// The default is an eighth of the memory that the process may use: the minimum of GOMEMLIMIT, the
// limit of its cgroup, and the machine's memory; if none of them is known, 512 MiB. It is at least
// four times [MaxMessage].
//
// Memory that handlers allocate is not counted, and neither are requests of up to 4 KiB, whose
// number [MaxInFlight] bounds. Go's garbage collector lets a process grow to twice the memory in
// use: in a container, also set GOMEMLIMIT, a little below the container's limit.
func MaxMemory(bytes int) ServerOption {
	return serverOption(func(o *serverOptions) {
		if o.wants(bytes >= 1, "anser.MaxMemory(%d): want at least 1 byte", bytes) {
			o.maxMemory = bytes
		}
	})
}

// The memory of a server bounds the bytes of large requests that it holds at once: requests that
// are arriving, waiting for their handler, or running. Without it, the bound would be the number of
// calls in flight times the size of a message, which is 40 GiB.
//
// It counts the buffers of large frames that arrive, the requests of more than smallRequest
// bytes that were handed to a worker, and replies of more than smallRequest bytes until they are in
// the buffer of their connection, or written if they are lent. It does not count small requests and
// replies, nor what handlers allocate for a request, so the limit should be a small part of the
// memory of the process.

// smallRequest is the size up to which requests are not counted.
const smallRequest = 4 << 10

const (
	memoryShare   = 8         // the default is 1/memoryShare of the process's memory
	unknownMemory = 512 << 20 // the default where nothing is known
	memoryFrames  = 4         // number of messages of the maximum size that always fit
)

// memoryLimit returns the limit that the options of a server specify.
func memoryLimit(o *serverOptions) int64 {
	least := memoryFrames * (int64(o.maxMessage) + frameOverhead)
	if o.maxMemory != 0 {
		o.wants(int64(o.maxMemory) >= memoryFrames*int64(o.maxMessage),
			"anser.MaxMemory(%d): want at least %d bytes, %d times anser.MaxMessage: a message of that size takes up to three times as much while it arrives",
			o.maxMemory, memoryFrames*int64(o.maxMessage), memoryFrames)
		return int64(o.maxMemory)
	}
	if all := processMemory(); all != math.MaxInt64 {
		return max(all/memoryShare, least)
	}
	return max(unknownMemory, least)
}

// processMemory returns how many bytes the process may use, or math.MaxInt64 if unknown.
var processMemory = sync.OnceValue(func() int64 {
	return min(debug.SetMemoryLimit(-1), sysmem.Limit())
})

func (s *Server) outOfMemory(size int) *Error {
	return over(limitMemory, "the request of %d bytes is over the server's limit of %d bytes of requests at once (anser.MaxMemory)", size, s.memory.Limit())
}

// leftUnread returns the error of a call whose reply of size bytes is dropped, and counts it.
func (s *Server) leftUnread(size int) *Error {
	s.stats.hit(limitMemory)
	return &Error{
		Code: ResourceExhausted, Outcome: Executed, limit: limitMemory,
		Message: fmt.Sprintf("the reply of %d bytes is dropped: the client has left as many bytes of replies unread on this connection as the server allows (half of anser.MaxMemory): read faster, or make fewer calls at once", size),
	}
}

// turnAway refuses the arriving request, which does not fit into the memory, and discards the rest
// of it. Other frames that are due are accepted.
func (c *serverConn) turnAway(s *reading) error {
	if s.parts != nil && s.parts.left > 0 {
		return c.turnAwayParts(s)
	}
	begun := s.begun()
	h, err := wire.ParseHeaderWith(begun, s.sealed)
	if err != nil {
		return err
	}
	rest := wire.HeaderSize + int(h.Length) - len(begun)
	if h.Type != wire.TypeRequest {
		return c.exceedMemory(s, h, rest)
	}
	if err := c.takeID(s, h.ID); err != nil {
		return err
	}
	c.pings = pingLimit{}
	number, err := s.methodOf(begun)
	if err != nil {
		return err
	}
	if s.sealed != 0 { // otherwise the refusal might be for the wrong call
		if err := s.discard(rest); err != nil {
			return err
		}
	}
	if err := c.refuseUnread(s, h, number); err != nil || s.sealed != 0 {
		return err // or it is discarded already
	}
	return s.discard(rest)
}

// exceedMemory takes the memory for a frame that is not a REQUEST over the limit, unless the frame
// is not due: a reply is bounded by the call, and DATA by the credit of the connection. Frames of
// an unknown type are ignored anyway. rest is what has not arrived of the frame.
func (c *serverConn) exceedMemory(s *reading, h wire.Header, rest int) error {
	var err error
	due := true
	switch {
	case h.Type == wire.TypeReply || h.Type == wire.TypeError:
		due, err = c.awaits(h)
	case h.Type == wire.TypeData:
		err = c.streams.admit(h)
	case h.Type >= wire.FirstSkippable:
		due = false
	default:
		size := h.Length
		if s.sealed != 0 {
			size -= wire.ChecksumSize
		}
		if size > maxHello {
			err = wire.Errorf(wire.FrameTooLarge, "a %s of %d bytes, over the limit of %d", h.Type, size, maxHello)
		}
	}
	switch {
	case err != nil:
		return err
	case !due:
		return s.discard(rest)
	}
	s.makeLarge(true)
	return nil
}

// turnAwayParts refuses the REQUEST that arrives in PARTs, and throws the rest of it away.
func (c *serverConn) turnAwayParts(s *reading) error {
	h, number := s.parts.Head, s.parts.method
	s.inParts = 0
	s.dropParts()
	if err := c.refuseUnread(s, h, number); err != nil {
		return err
	}
	c.endArrival()
	return nil
}

// refuseUnread answers a REQUEST for which there is no memory.
func (c *serverConn) refuseUnread(s *reading, h wire.Header, number uint32) error {
	refused := c.server.outOfMemory(int(h.Length))
	c.server.refused(nil, s.methods[number-1].method, refused)
	if h.Flags&wire.FlagOneway != 0 {
		return nil
	}
	b := refused.body()
	s.out = c.appendError(s.out, h.ID, 0, &b)
	return c.flush(s) // before the rest has arrived: the client may stop sending
}

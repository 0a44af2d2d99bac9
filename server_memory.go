package anser

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysmem"
	"github.com/anser-rpc/anser/wire"
)

// MaxMemory sets how many bytes of requests the server holds at once: large requests that arrive,
// wait or run, with their replies. A request that would exceed it is refused with ResourceExhausted
// while it arrives, and its bytes are discarded. The large replies of a connection whose client
// does not read may take half of it; further ones are dropped, and their calls fail with
// ResourceExhausted. Those of a client that reads are dropped only at twice MaxMemory.
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
		Message: fmt.Sprintf("the reply of %d bytes is dropped: the client has left as many bytes of replies unread as the server allows (anser.MaxMemory): read faster, or make fewer calls at once", size),
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

// readsWithin is how long a client may take nothing of what is written to it, and still counts as
// one that reads: its machine may be overloaded, or its network may have lost packets.
const readsWithin = 3 * time.Second

// waitState records whether a job waits until its client reads.
type waitState uint8

const (
	waits  waitState = 1 + iota // its next worker waits; it has no place of a limit meanwhile
	waited                      // it does not wait again
)

// mayWait reports whether the job waits for its client, if that has left many replies unread. Calls
// of methods that have had no large reply yet need not: small replies pass large ones, whose frames
// are written in PARTs.
func (j *job) mayWait() bool {
	return j.unread != waited && j.refused == nil && j.ctx.method.large.Load()
}

// waitsFirst reports whether a call of a method with limits, which arrives now, waits before it
// takes a place of them.
func (c *calleeHalf) waitsFirst(m *method) bool {
	return c.unread.Any() && m.large.Load() && c.unread.Full()
}

// awaitReading waits, if necessary, until the client reads. A call that counts for the limits of
// its method does not meanwhile, as other clients could not call the method: another worker waits.
// gone reports that the job is not this worker's any more; next is the job that it executes then,
// or nil.
func (j *job) awaitReading() (next *job, gone bool) {
	ctx := j.ctx
	unread := &ctx.conn.unread
	switch {
	case j.unread == waits:
		j.unread = waited
		j.expected = unread.Await()
		return nil, j.enterAgain()
	case ctx.priority <= priorityBits:
		j.expected = unread.Await()
	case unread.Full():
		ctx.releaseLimits()
		next = ctx.nextWaiting()
		ctx.priority &= priorityBits
		j.unread = waits
		j.start()
		return next, true
	}
	return nil, false
}

// enterAgain applies the limits of its method to a job that has waited. gone is as in awaitReading.
func (j *job) enterAgain() (gone bool) {
	g, ctx := j.ctx.method.limits, j.ctx
	taken, refused := g.admit(ctx.level(), 0)
	if refused != nil {
		j.refused = refused
		return false
	}
	ctx.priority |= taken
	if g.queue == nil {
		return false
	}
	g.queue.enter(j)
	return true
}

// holdAnswer counts the answer of a job until the connection has it, or has written it if it is
// lent, if it is large. If that is not possible, an error replaces it.
func (c *calleeHalf) holdAnswer(ctx *callContext, j *job) {
	switch n := max(len(j.run.lent.payload), len(j.out)); {
	case n <= smallRequest:
	case !c.holdReply(ctx.method, n):
		j.run.lent.end()
		j.run.fault = c.server.leftUnread(n)
		j.out = appendFault(nil, ctx, j.run.fault)
	default:
		j.run.lent.held, j.run.lent.backlog = n, &c.unread
	}
	if k := ctx.protocolCall(); k != nil { // the protocol encodes it
		k.expected, j.expected = j.expected, 0
	}
	j.known(ctx)
}

// holdReply counts a large reply of n bytes until it is released, unless the client has left too
// many unread.
func (c *calleeHalf) holdReply(m *method, n int) bool {
	if !m.large.Load() {
		m.large.Store(true)
	}
	return c.unread.Hold(n, c.reads())
}

// reads reports whether the client has lately taken some of what is written to it.
func (c *calleeHalf) reads() bool {
	since := c.stalledSince()
	return since == 0 || mono.Now().Sub(since) < readsWithin
}

// errUnread is the error of a reply that is dropped, as the client has left too many unread.
var errUnread = errors.New("the client does not read")

// awaitTurnLocked waits until the connection can take a reply. It returns errUnread if the client
// has stopped reading while too many replies wait.
func (c *calleeHalf) awaitTurnLocked(lent *lentReply) error {
	for {
		ctx, cancel := context.Background(), func() {}
		if lent.held > smallRequest && c.unread.Over() {
			ctx, cancel = context.WithTimeout(ctx, readsWithin)
		}
		err := c.waitRoomLocked(ctx)
		if lent.payload != nil && err == nil {
			err = c.awaitLoanLocked(ctx)
		}
		cancel()
		switch {
		case err != context.DeadlineExceeded || c.err != nil:
			return err
		case c.unread.Over() && !c.reads():
			return errUnread
		}
	}
}

// known records that the reply is known that was expected.
func (j *job) known(ctx *callContext) {
	if j.expected != 0 {
		ctx.conn.unread.Known(j.expected)
		j.expected = 0
	}
}

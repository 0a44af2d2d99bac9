package anser

import (
	"context"
	"crypto/tls"
	"slices"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/idtable"
	"github.com/anser-rpc/anser/internal/membudget"
	"github.com/anser-rpc/anser/internal/placement"
	"github.com/anser-rpc/anser/wire"
)

// calleeHalf is the half of a connection that takes calls: on a server, or on a client that its
// server calls. It answers through the writer of the connection. On a client's connection it runs
// no handler on the reader goroutine, which must not block, and takes no streams.
type calleeHalf struct {
	*conn
	server   *Server
	accepted *serverConn // whose half it is; nil on a client's connection
	idBit    uint64      // of the ids of its calls: fromServer on a client's connection, else 0
	tls      *tls.ConnectionState
	auth     *connAuth // nil: the peer proves no identity
	lane     uint32    // chooses among the parts of what the connections of the server write

	// Guarded by mu.
	running   idtable.Table[*callContext] // calls that do not run on the reader goroutine
	opened    uint64                      // number of calls ever added to running
	detached  int                         // number of calls in running, and of cancelled ones whose handler has not returned
	streaming int                         // streams whose handlers have not returned

	unread membudget.Backlog // the large replies that are not written yet
}

func (c *calleeHalf) peerInfo() Peer {
	if c.accepted != nil && c.accepted.protocol != nil {
		p := c.accepted.protocol.remote
		p.Identity = c.identity()
		return p
	}
	return Peer{Addr: c.nc.RemoteAddr(), Local: c.nc.LocalAddr(), TLS: c.tls, Identity: c.identity(), Checksums: c.checksums != nil}
}

// takeID accepts the id of a REQUEST, which must be an id of the peer and larger than the last
// one.
func (c *calleeHalf) takeID(s *reading, id uint64) error {
	if id <= s.lastID || id&fromServer != c.idBit {
		return c.takenID(s, id)
	}
	s.lastID = id
	return nil
}

// takenID accepts the id of a REQUEST that has arrived in PARTs: it was taken with the first one.
func (c *calleeHalf) takenID(s *reading, id uint64) error {
	if id == s.inParts && id != 0 && s.parts == nil {
		s.inParts = 0
		if c.accepted != nil && !s.drained { // otherwise its reply is sent first
			c.accepted.endArrival()
		}
		return nil
	}
	return wire.Errorf(wire.BadID, "REQUEST with id %d after %d: ids must grow", id&^c.idBit, s.lastID&^c.idBit)
}

// request handles a REQUEST frame: it runs the handler here or hands the call to a worker.
func (c *calleeHalf) request(s *reading, h wire.Header, body []byte) (lost bool, err error) {
	if err := c.takeID(s, h.ID); err != nil {
		return false, err
	}
	if s.requests++; s.requests%placement.SampleEvery == 1 {
		s.turn++
	}
	c.pings = pingLimit{}
	var r wire.Request
	fault := wire.ParseRequest(h.Flags, body, &r)
	if broken, ok := fault.(*wire.Error); ok { // errors.As would allocate for every request
		return false, broken
	}
	if r.Method == 0 || int(r.Method) > len(s.methods) {
		return false, wire.Errorf(wire.BadMethod, "REQUEST for the method %d, %d are named", r.Method, len(s.methods))
	}
	n := &s.methods[r.Method-1]
	if n.method == nil { // it may have been added since it was named
		if c.server.table.resolve(n); n.method != nil {
			c.expect(s, n.method)
		} else if c.server.o.forwarder != nil {
			return false, c.forward(s, n, h, &r, fault)
		}
	}
	var cd codec.Codec
	var refused *Error
	if c.auth != nil {
		refused = c.authorize(s.now, n)
	}
	if refused == nil {
		if cd, refused, err = c.admit(s, n, h, &r, fault); err != nil {
			return false, err
		}
	}
	var taken uint8
	later := false // the limits of the method apply after a wait
	if refused == nil && n.method.limits != nil {
		if later = c.waitsFirst(n.method); !later {
			taken, refused = n.method.limits.admit(Priority(r.Priority), s.waited())
		}
	}
	if refused != nil {
		return false, c.turnDown(s, n.method, h, refused)
	}
	if n.alias != nil {
		n.alias.uses.Add(1)
	}
	m := n.method
	ctx := c.newContext(s, m, h, &r)
	ctx.priority |= taken
	if ctx.expired(s.now) {
		return false, c.refuse(s, ctx, errExpired)
	}
	if ctx.extras != nil && ctx.extras.key != "" {
		if refused := c.server.takesKey(ctx.method, ctx.oneway); refused != nil {
			return false, c.refuse(s, ctx, refused)
		}
		return c.handToWorker(s, n, ctx, cd, r.Payload, later) // it may wait for a duplicate
	}
	if m.converse != nil {
		return false, c.openStream(s, n, ctx, cd, r.Payload)
	}
	if later || c.accepted == nil || s.givesAway(m, cd, r.Payload) {
		return c.handToWorker(s, n, ctx, cd, r.Payload, later)
	}
	lone := !s.inline(n)
	if lone && !c.isLone(s, m) {
		return c.handToWorker(s, n, ctx, cd, r.Payload, false)
	}
	return c.accepted.runInline(s, ctx, cd, r.Payload, lone)
}

// givesAway reports whether the call is handed to a worker because its job can give the buffer of
// the request to the message.
func (s *reading) givesAway(m *method, cd codec.Codec, payload []byte) bool {
	if len(payload) < lendFrom || !s.isLarge() || m.mode != runLearned {
		return false
	}
	_, raw := cd.(codec.Raw)
	return raw
}

// inline reports whether a call of n runs on the reader goroutine. It asks the method in each
// turn, not for each call: what the method knows is written by all processors.
func (s *reading) inline(n *named) bool {
	if n.asked != s.turn {
		n.asked, n.inline = s.turn, n.method.inline(s.now)
	}
	return n.inline
}

// After loneReads reads, each with one request, a connection is taken for one that carries one call
// at a time. Each run that is handed off multiplies the number, so a connection that carries more,
// though seldom, is not taken for one again and again.
const (
	loneReads     = 64
	loneDoublings = 4 // for each handoff
	maxHandoffs   = 6 // that count
)

// isLone reports whether a call of a method that workers run may run on the reader goroutine
// nevertheless, as it holds up no other call of the connection, no call to the client, and no
// answer that is not written yet. With a connection for each caller the switch to a worker would
// cost more than the handler.
func (c *calleeHalf) isLone(s *reading, m *method) bool {
	if s.lone < loneReads<<(loneDoublings*s.handoffs) || s.requests > 1 || s.r != s.w || len(s.out) > 0 || m.mode != runLearned || !m.placement.Short() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.detached > 0 || c.accepted.callsClient() {
		s.lone = 0
	}
	return s.lone > 0
}

// callForwarder forwards calls of methods that the server does not serve; see [Forward].
type callForwarder interface {
	// announced prepares n for a name that a client gives a number, and reports whether it knows
	// the name already.
	announced(n *named, name string) bool
	// forward handles a REQUEST of such a method, which has the fault as a frame, if any. An error
	// is one of the connection.
	forward(c *calleeHalf, s *reading, n *named, h wire.Header, r wire.Request, fault error) error
	// each calls f for the methods of which calls were forwarded, with their counters.
	each(f func(m *method))
}

// forward gives a call to the forwarder. The request is copied for it, so that other requests need
// not be on the heap.
//
//go:noinline
func (c *calleeHalf) forward(s *reading, n *named, h wire.Header, r *wire.Request, fault error) error {
	return c.server.o.forwarder.forward(c, s, n, h, *r, fault)
}

// turnDown answers a call that has no context yet. m is nil if its method is not known.
func (c *calleeHalf) turnDown(s *reading, m *method, h wire.Header, refused *Error) error {
	c.server.refused(nil, m, refused)
	if h.Flags&wire.FlagOneway == 0 {
		b := refused.body()
		s.out = c.appendError(s.out, h.ID, 0, &b)
	}
	return c.flushIfFull(s)
}

// refuse answers a call that has a context and will not run.
func (c *calleeHalf) refuse(s *reading, ctx *callContext, e *Error) error {
	s.out = appendRefusal(s.out, ctx, e)
	ctx.releaseLimits()
	return c.flushIfFull(s)
}

func (c *calleeHalf) flushIfFull(s *reading) error {
	if len(s.out) < flushAt {
		return nil
	}
	return c.flush(s)
}

// flushLent sends the reply of a call that has run inline. s.out has the head of the frame from a
// position on, and lent is the payload. The reader goroutine does not wait until a large reply is
// written, unless too many wait for that already.
func (c *calleeHalf) flushLent(s *reading, ctx *callContext, head int, lent []byte) error {
	if s.greets {
		out := s.out
		s.out = nil
		if err := c.flush(s); err != nil {
			return err
		}
		s.out = out
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.run.ended = 0
	if c.lent != nil && c.answerLaterLocked(ctx, s.out[head:], lent) {
		s.out = s.out[:head]
		return nil
	}
	if err := c.awaitLoanLocked(context.Background()); err != nil {
		return err
	}
	head += len(c.buf)
	c.appendLocked(s.out)
	s.out = s.out[:0]
	c.unread.Force(len(lent))
	c.lendLocked(head, lent).reply = lentReply{payload: lent, held: len(lent), backlog: &c.unread}
	c.flushInBackgroundLocked()
	return nil
}

// answerLaterLocked makes another goroutine answer a call that has run inline, when no other large
// reply is written any more. It fails if the limits of calls and memory do not allow one more.
func (c *calleeHalf) answerLaterLocked(ctx *callContext, head, lent []byte) bool {
	srv, held := c.server, len(head)+len(lent)
	if c.err != nil || uint64(c.detached) >= srv.settings.MaxCalls || !srv.inFlight.Take(c.lane) {
		return false
	}
	if !c.unread.Take(held) {
		srv.inFlight.Give(c.lane)
		return false
	}
	c.openLocked(ctx)
	c.background.Add(1)
	frame, reply := slices.Clone(head), lentReply{payload: lent, held: held, backlog: &c.unread}
	go func() {
		defer c.background.Done()
		c.answer(ctx, frame, reply)
		c.release(ctx)
	}()
	return true
}

func (c *calleeHalf) flush(s *reading) error {
	if len(s.out) == 0 && !s.greets {
		return nil
	}
	s.run.ended = 0 // writing may take long
	var err error
	if s.greets {
		s.greets = false
		err = c.writeHeld(s.out)
	} else {
		err = c.sendOwned(s.out)
	}
	s.out = s.out[:0]
	if cap(s.out) > maxKeptOut {
		s.out = nil
	}
	return err
}

// finishDrain closes a server's connection that its client no longer uses and on which no call is
// open. It is called whenever the last call may have ended.
func (c *calleeHalf) finishDrain() {
	if c.accepted != nil {
		c.accepted.finishDrain(nil)
	}
}

// answer sends the answer of a call and removes the call from the table in one step: between two
// steps no call would be open, and a drain would close the connection before the answer is sent.
// The payload of the frame may be in lent.
func (c *calleeHalf) answer(ctx *callContext, frame []byte, lent lentReply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.awaitTurnLocked(&lent)
	c.detached--
	// A cancelled or lost call is no longer in the table, and its reply is not needed.
	if c.running.Take(ctx.id) == nil || err != nil && err != errUnread || len(frame) == 0 {
		lent.end()
		return
	}
	if err == errUnread {
		frame = appendFault(nil, ctx, c.server.leftUnread(lent.held))
		lent.end()
	}
	if lent.payload != nil {
		head := len(c.buf)
		c.appendLocked(frame)
		c.lendLocked(head, lent.payload).reply = lent
		if !c.writing {
			c.flushLocked(false)
		}
		return
	}
	defer lent.end()
	if len(frame) > loadBuffer && !c.writing {
		c.writeOwnedLocked(frame) // a copy would make the buffers of the connection as large
		c.drainLocked()
		return
	}
	c.appendLocked(frame)
	if !c.writing {
		c.flushLocked(c.detached > 0)
	}
}

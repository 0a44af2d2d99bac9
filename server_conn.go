package anser

import (
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/cancelpace"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/placement"
	"github.com/anser-rpc/anser/internal/upkeep"
	"github.com/anser-rpc/anser/wire"
)

// serverConn is one connection of a server.
type serverConn struct {
	calleeHalf
	link     conn                          // of both halves
	toClient atomic.Pointer[callsToClient] // the caller half, once the server has called
	session  *Session                      // of a client that takes calls, or nil
	protocol *ProtocolConn                 // nil: the connection speaks Anser's own protocol

	token   atomic.Uint64 // identifies the reader goroutine; see server_handoff.go
	watched atomic.Bool   // the monitor checks the connection
	seen    readToken     // of the monitor
	same    int           // how often in a row the monitor has found seen again

	// state is owned by the reader goroutine; the monitor replaces it when it hands over.
	state *reading

	// Guarded by mu.
	draining bool // DRAIN was sent, or the client has announced that it opens no more calls
	acked    bool // the client opens no more calls
	arriving bool // a REQUEST is open that arrives in PARTs

	idle idleness // owned by tend
}

func newServerConn(s *Server) *serverConn {
	c := new(serverConn)
	c.conn, c.server, c.accepted, c.lane = &c.link, s, c, s.lanes.Add(1)
	c.unread.SetBudget(&s.memory)
	return c
}

// reading is the state of the reader goroutine of a connection.
type reading struct {
	reader
	*desk      // nil while the goroutine waits for a socket
	generation uint32
	tick       uint32
	now        mono.Time    // time at the end of the latest step
	arrived    mono.Time    // time at which the whole frames in the buffer had arrived
	run        execution    // of the call that runs inline
	current    *callContext // context of the handler that runs inline

	methods   []named
	unknown   int // bytes of the names in methods
	unlisted  int // methods that are forwarded and had no answer when they were called first
	hints     int // of the methods that have one
	lastID    uint64
	inParts   uint64    // id of the REQUEST that arrives in PARTs, unless it was dropped, or 0
	spared    uint64    // inParts when drained was set
	auths     pingLimit // of AUTH frames
	cancels   cancelpace.Limit
	drained   bool   // the client opens no more calls
	greets    bool   // the writer holds the preface and settings: see [writer.hold]
	requests  int    // since the last read
	lone      int    // reads in a row that brought one request each; see [calleeHalf.isLone]
	handoffs  int    // from a handler so far, maxHandoffs at most
	turn      uint32 // grows with each read, and with every few requests since; see inline
	untimed   int64  // runs since the last timed one
	key       string // of idempotency, of the last request with metadata
	sockDelay *sockDelay
	protocol  Protocol // another one that the client speaks, or nil
}

// desk is what a reader goroutine works with while it handles what it has read: a connection on
// which nothing arrives has none. It is pooled, so what one connection needed is still in the
// caches when the next one is read.
type desk struct {
	out    []byte // replies that are not written yet
	slab   []callContext
	extras []callExtras // the same, for requests that need them
	traces []heldTrace  // the same, of pieces of few bytes without pointers
}

var desks = sync.Pool{New: func() any { return new(desk) }}

// takeDesk makes sure that the reader goroutine has a desk.
func (s *reading) takeDesk() {
	if s.desk == nil {
		s.desk = desks.Get().(*desk)
	}
}

// leaveDesk gives the desk back, unless replies are on it that are not written yet.
func (s *reading) leaveDesk() {
	if d := s.desk; d != nil && len(d.out) == 0 {
		s.desk = nil
		desks.Put(d)
	}
}

// Waits gives the desk back, and the buffer of the reader: nothing is left to be handled.
func (s *reading) Waits() {
	s.leaveDesk()
	s.reader.Waits()
}

// named is a method under the name that the client has announced.
type named struct {
	name      string // only of a method that was not served when it was announced; "" when there are too many
	looked    uint64 // version of the table of methods in which the name was looked for
	foreign   bool   // it is called over another protocol
	hint      string // the method that may have been meant
	method    *method
	alias     *alias
	forwarded *method // counts the calls that are forwarded, or nil

	// The decision of the policy, and the identity and the version of the policy that it is valid
	// for.
	decided *verifiedIdentity
	version uint64
	allowed bool

	// The answer of the method to whether it runs on the reader goroutine, and the turn at which it
	// was asked.
	inline bool
	asked  uint32
}

const (
	slabSize   = 16
	maxHints   = 16          // names for which a hint is looked for
	maxUnknown = 64 << 10    // bytes of names of methods that are not served
	maxKeptOut = 4 * flushAt // a larger buffer of replies is dropped after use
	flushAt    = 64 << 10    // bytes of replies that are written before the input is used up
)

func (c *serverConn) info() ConnInfo { return ConnInfo{Server: true, Peer: c.peerInfo()} }

// serve reads the connection until it ends or another goroutine has taken over.
func (c *serverConn) serve(s *reading) {
	err, lost := c.loop(s)
	if !lost {
		c.end(s, err)
	}
}

// loop handles frames. lost says that this goroutine no longer owns the reading state.
func (c *serverConn) loop(s *reading) (err error, lost bool) {
	s.takeDesk()
	for {
		h, body, ok, err := s.next()
		if err != nil {
			return err, false
		}
		if !ok {
			if err := c.pause(s); err != nil {
				return err, false
			}
			s.now = mono.Now()
			s.arrived, s.run.ended = s.now, s.now
			continue
		}
		if h.Type == wire.TypeRequest {
			if lost, err = c.request(s, h, body); lost || err != nil {
				return err, lost
			}
			continue
		}
		if err := c.control(s, h, body); err != nil {
			return err, false
		}
	}
}

// pause writes the replies to the input handled so far, and reads more.
func (c *serverConn) pause(s *reading) error {
	if err := c.flush(s); err != nil {
		return err
	}
	c.finishDrain(s)
	if s.requests > 1 {
		s.lone = 0
	} else {
		s.lone += s.requests
	}
	s.requests = 0
	var err error
	if s.sockDelay != nil {
		err = s.sockDelay.fill(&s.reader)
	} else {
		err = s.fill()
	}
	s.takeDesk()
	if err == errNoMemory {
		return c.turnAway(s)
	}
	return err
}

// runInline runs the handler on this goroutine. Until the handler has returned, the monitor may
// transfer the reading of the connection to another goroutine. lone says that the method runs on
// workers otherwise.
func (c *serverConn) runInline(s *reading, ctx *callContext, cd codec.Codec, payload []byte, lone bool) (lost bool, err error) {
	s.untimed++
	var timed placement.Run
	if s.requests%placement.SampleEvery == 1 && (!lone || s.untimed >= placement.SampleEvery) {
		if s.requests > 1 {
			s.now = mono.Now()
			s.run.ended = s.now
		}
		timed = ctx.method.placement.Begin(s.now, s.untimed)
		s.untimed = 0
	}
	s.current = ctx
	word := c.beginTurn(s)
	returned := false
	defer func() {
		if !returned {
			c.exited(s, word, ctx)
		}
	}()
	s.run = execution{arrived: s.arrived, began: s.run.ended, lends: true} // the end of the call before
	out := c.server.execute(ctx, cd, payload, s.out, &s.run)
	returned = true
	if !c.token.CompareAndSwap(word, uint64(readToken(word).idle())) {
		// Another goroutine reads now, with copies of the data in s. It holds the lock that
		// finishDetached takes until the copies are made.
		if timed.Weight > 0 {
			ctx.method.end(&timed, s.run.end(), true)
		}
		c.finishDetached(ctx, out[len(s.out):], s.run.lent)
		s.release()
		return true, nil
	}
	head := len(s.out)
	s.out = out
	s.current = nil
	ctx.finish()
	if timed.Weight > 0 {
		s.now = s.run.end()
		ctx.method.end(&timed, s.now, false)
	}
	if lent := s.run.lent.payload; lent != nil {
		s.run.lent.payload = nil
		return false, c.flushLent(s, ctx, head, lent)
	}
	return false, c.flushIfFull(s)
}

// beginTurn lets the monitor transfer the reading while code of the user runs on this goroutine.
func (c *serverConn) beginTurn(s *reading) (word uint64) {
	s.tick += nextTurn
	flags := turnRuns
	if s.r != s.w || len(s.out) > 0 || s.greets {
		flags |= turnMore
	}
	word = uint64(makeReadToken(s.generation, s.tick|flags))
	c.token.Store(word)
	if !c.watched.Load() {
		c.server.monitor.watch(c)
	}
	return word
}

var errExited = &Error{Code: Internal, Outcome: Executed, Message: "the handler ended its goroutine with runtime.Goexit, as t.FailNow does"}

// exited runs when the handler ends the reader goroutine with runtime.Goexit. Another goroutine
// goes on reading, unless one does already.
func (c *serverConn) exited(s *reading, word uint64, ctx *callContext) {
	if !c.token.CompareAndSwap(word, uint64(readToken(word).idle())) {
		c.finishDetached(ctx, appendFault(nil, ctx, errExited), lentReply{})
		s.release()
		return
	}
	s.out = appendFault(s.out, ctx, errExited)
	s.current = nil
	ctx.finish()
	c.server.conns.Go(func() { c.serve(s) })
}

// reassignReader starts a goroutine that goes on reading where the current one is stuck in a
// handler. It fails when the handler has returned in the meantime. It runs on the monitor; kept
// is as for look.
func (c *serverConn) reassignReader(t readToken, kept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.state // ordered by the turn: its owner stored it before the handler
	if !c.token.CompareAndSwap(uint64(t), uint64(t.next())) {
		return
	}
	s := &reading{
		generation: uint32(t.next() >> 32), methods: old.methods, unknown: old.unknown, unlisted: old.unlisted, hints: old.hints, lastID: old.lastID, inParts: old.inParts, spared: old.spared, now: mono.Now(), arrived: old.arrived,
		auths: old.auths, cancels: old.cancels, drained: old.drained, greets: old.greets, sockDelay: old.sockDelay, turn: old.turn, handoffs: old.handoffs,
	}
	s.continueFrom(&old.reader, s)
	s.takeDesk()
	s.out = append(s.out, old.out...)
	c.state = s
	c.server.stats.handoffs.Add(1)
	taken := old.current
	if taken != nil { // otherwise a request is decoded for a worker
		c.openLocked(taken)
		s.handoffs = min(s.handoffs+1, maxHandoffs)
		if m := taken.method; m.mode == runLearned {
			m.placement.Handoff(s.now, m.calls.Load(), kept)
		}
		c.server.inFlight.Force(c.lane)
	}
	c.server.conns.Go(func() {
		if c.auth != nil && taken != nil {
			c.recheck(taken) // a change while it ran inline has not seen it
		}
		c.serve(s)
	})
}

// tend does the maintenance that is due for the connection, and returns when it is due next.
func (c *serverConn) tend(now, _ mono.Time) (due mono.Time) {
	due = c.drainIdle(now)
	if c.auth != nil {
		due = min(due, c.tendTrust(now, false))
	}
	if c.protocol != nil { // which keeps its connections alive itself
		return due
	}
	again := c.trim()
	if again = c.trimStreams() || again; again {
		due = min(due, now.Add(upkeep.Interval))
	}
	alive, fault := c.keepAlive(now, &c.server.o.keepaliveOptions, upkeep.Never)
	switch fault {
	case writeStalled:
		c.server.stats.close(wire.Timeout)
		c.server.stats.hit(limitWriteStall)
	case frameSlow:
		c.server.stats.hit(limitWriteStall)
	case frameLate:
		c.server.stats.hit(limitReadTimeout)
	}
	return min(due, alive)
}

// fail closes the connection at once.
func (c *serverConn) fail(err error) {
	if c.protocol != nil {
		c.protocol.close(err)
		return
	}
	c.writer.fail(err)
}

// failWith ends the connection with a reason for the peer.
func (c *serverConn) failWith(e *wire.Error) {
	if c.protocol != nil {
		c.protocol.closeTold(e)
		return
	}
	c.writer.failWith(e)
}

// spawn runs f, which may block on the connection, on a goroutine of its own.
func (c *serverConn) spawn(f func()) { c.server.conns.Go(f) }

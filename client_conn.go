package anser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/idtable"
	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/wire"
)

// Where the id, the number of the method, the number of the attempt and the remaining time stand in a
// REQUEST frame.
const (
	idOffset      = 8
	methodOffset  = wire.HeaderSize
	attemptOffset = wire.HeaderSize + 6
	timeoutOffset = wire.HeaderSize + 8
)

// clientConn is one connection to a server, shared by the clients of the process.
type clientConn struct {
	writer
	host     *host
	own      bool // of one stream, which ends it
	aside    bool // its identity has ended, and others take its calls; guarded by the host's mu
	role     readRole
	streams  streams
	callee   atomic.Pointer[callee] // for calls of the server, once there was one
	peer     wire.Settings
	progress progress
	born     int64
	wg       sync.WaitGroup
	socket   *sysconn.Writer // of the goroutine that writes; nil: a write may wait
	behind   func()          // writeBehind; made once, so that starting it allocates nothing
	renewal  *renewal        // nil: no credential was shown
	trust    *trust          // of the client that a server calls; nil: not such a connection, or without authentication

	// Guarded by mu.
	lastID uint64
	open   idtable.Table[*call]
	naming
	draining bool // no more calls
	expiry   *time.Timer
	expireAt int64  // nanotime for which expiry is set, or 0
	rest     []byte // a write that could not go on, for writeRest
	restAt   int    // bytes of it that were taken
	reserved bool   // writing is set for writeBehind, which has not begun yet
	cancels  cancelPacer

	busy      atomic.Int32 // number of open calls, for choosing a connection
	owed      atomic.Int32 // number of cancels that wait for their turn
	streaming atomic.Int32 // number of open streams; they are in busy too
	waiting   atomic.Int32 // bytes/1024 that wait to be written, for growing
	pinged    atomic.Int64 // nanotime of a ping without an answer yet, or 0
	quiet     atomic.Int64 // nanoseconds without a call, as tend has seen it
	idle      idleness     // of the goroutine that tends
	idleSince int64        // nanotime since which nothing was open; of the goroutine that tends
	asked     int64        // nanotime of the last ping; of that goroutine too
	pings     pingLimit    // the reader's
}

// start sends the attempt k. When it fails nothing was sent and k is the caller's; otherwise one
// value arrives on k.done, unless cancel takes the call back.
func (c *clientConn) start(ctx context.Context, k *call, m *clientMethod) *Error {
	if uint64(len(k.frame)-wire.HeaderSize) > c.peer.MaxFrame {
		return c.tooLong(k)
	}
	c.mu.Lock()
	if n := int32(len(c.buf) >> 10); n >= growWaiting || c.waiting.Load() > 0 {
		c.waiting.Store(n)
		if err := c.awaitRoomLocked(ctx, k); err != nil {
			c.mu.Unlock()
			return err
		}
	}
	if c.err != nil || c.draining {
		err := c.goneLocked()
		c.mu.Unlock()
		return err
	}
	if c.trust != nil && c.trust.lapsed(nanotime()) {
		c.mu.Unlock()
		return clientLapsed(NotSent)
	}
	if n := c.open.Len() + len(c.cancels.owed); uint64(n) >= c.peer.MaxCalls {
		c.mu.Unlock()
		return failure(ResourceExhausted, NotSent, PhaseWrite, nil, "%d calls are open on the connection, the server's limit (anser.MaxCalls)", n)
	}
	if k.stream != nil {
		if n := c.streaming.Load(); uint64(n) >= c.peer.MaxStreams {
			c.mu.Unlock()
			if c.peer.MaxStreams == 0 {
				return failure(Unimplemented, NotSent, PhaseWrite, nil, "the other side offers no streams (anser.MaxStreams; a client takes none)")
			}
			return failure(ResourceExhausted, NotSent, PhaseWrite, nil, "%d streams are open on the connection and the server allows %d (anser.MaxStreams)", n, c.peer.MaxStreams)
		}
	}
	k.patient = ctx.Done() == nil && k.pending == nil
	number := c.numberLocked(m)
	if number == 0 {
		c.mu.Unlock()
		return errNamesUsedUp()
	}
	c.lastID++
	k.id = c.lastID
	if k.stream != nil {
		k.stream.id = k.id
		c.streaming.Add(1)
	}
	c.open.Put(k.id, k)
	c.busy.Store(int32(c.open.Len()))
	if k.deadline != 0 && (c.expireAt == 0 || k.deadline < c.expireAt) {
		c.expireLocked(k.deadline)
	}
	at := len(c.buf)
	c.buf = append(c.buf, k.frame...)
	putUint64(c.buf[at+idOffset:], k.id)
	putUint32(c.buf[at+methodOffset:], number)
	k.begin = c.appended
	c.appended += uint64(len(k.frame))
	switch {
	case c.reserved && len(c.buf) >= fullWrite && k.stream == nil && k.pending == nil && c.socket != nil:
		c.reserved = false // and writeBehind finds nothing to do
		c.writeLocked(ctx, k)
	case c.writing:
	case k.stream != nil || k.pending != nil:
		c.flushElsewhereLocked() // the caller most likely has more to send in the meantime
	default:
		c.writeLocked(ctx, k)
	}
	c.mu.Unlock()
	return nil
}

// writeLocked writes what waits on the goroutine of k's caller, which saves a switch between goroutines.
// It writes only what the transport takes at once, and no longer than k is open: a peer that does not
// read, or others that go on making calls, must not keep the caller. What is left is for writeRest.
func (c *clientConn) writeLocked(ctx context.Context, k *call) {
	if c.socket == nil {
		c.flushElsewhereLocked()
		return
	}
	if !c.writing {
		c.writing = true
		if c.open.Len() > 1 {
			c.gatherLocked()
		}
	}
	for len(c.buf) > 0 && c.err == nil {
		out := c.takeLocked()
		c.mu.Unlock()
		n, err := c.try(out)
		c.mu.Lock()
		if (n < len(out) || c.sealer.holds()) && err == nil && c.err == nil {
			c.rest, c.restAt = out, n
			c.writeElsewhereLocked()
			return
		}
		c.settleLocked(out, n, err)
		if len(c.buf) > 0 && c.err == nil && (len(k.done) > 0 || ctx.Err() != nil) {
			c.writeElsewhereLocked()
			return
		}
	}
	c.stopLocked()
}

// try hands over what the transport takes at once.
func (c *clientConn) try(out []byte) (taken int, err error) {
	if c.sealer != nil {
		return c.trySealed(out)
	}
	return c.socket.TryWrite(out)
}

func (c *clientConn) tooLong(k *call) *Error {
	return failure(ResourceExhausted, NotSent, PhaseWrite, nil,
		"the request of %d bytes is over the server's limit of %s: raise it there with anser.MaxMessage, or send less",
		len(k.frame)-wire.HeaderSize, frameLimit(c.peer.MaxFrame))
}

// awaitRoomLocked waits until the write buffer is not over its limit, while the call has time. The call
// is not open yet, so nothing else ends it.
func (c *clientConn) awaitRoomLocked(ctx context.Context, k *call) *Error {
	if len(c.buf) <= maxBuffered || !c.writing {
		return nil
	}
	if k.pending != nil && !k.pending.waits {
		return errNoRoom
	}
	if k.atOnce {
		return failure(ResourceExhausted, NotSent, PhaseWrite, nil, "the other side has %d bytes to read before it", len(c.buf))
	}
	bounded, cancel := k.bound(ctx)
	defer cancel()
	if err := c.waitRoomLocked(bounded); err != nil && c.err == nil {
		return contextFailure(bounded, NotSent, PhaseWrite)
	}
	if k.stream != nil {
		bounded = k.stream.ctx // the other one bounds the opening
	}
	k.shrinkTimeout(bounded)
	return nil
}

// goneLocked says why the connection takes no call.
func (c *clientConn) goneLocked() *Error {
	if c.err == nil {
		return failure(Unavailable, NotSent, PhaseWrite, nil, "the connection takes no more calls")
	}
	return failure(Unavailable, NotSent, PhaseWrite, c.err, "the connection was lost: %v", c.err)
}

// numberLocked returns the number of the method on this connection, and names it the first time. It is 0
// when the connection has no number left.
func (c *clientConn) numberLocked(m *clientMethod) uint32 {
	if int(m.number) < len(c.numbers) && c.numbers[m.number] != 0 {
		return c.numbers[m.number]
	}
	if m.number == maxNumberedMethods && c.further[m.name] != 0 {
		return c.further[m.name]
	}
	return c.nameLocked(m)
}

// wait returns when the attempt is over. A context that ends first takes the call back and tells
// the server.
func (c *clientConn) wait(ctx context.Context, k *call) *Error {
	done := ctx.Done()
	if done == nil {
		c.readUntil(k)
		return k.failed
	}
	c.attend()
	select {
	case <-k.done:
	case <-done:
		if taken, outcome := c.cancel(k, isOver(ctx)); taken {
			return contextFailure(ctx, outcome, PhaseWait)
		}
		<-k.done // its reply is being delivered
	}
	return k.failed
}

// isOver reports whether the deadline of ctx has passed, which travels with each call.
func isOver(ctx context.Context) bool {
	_, bounded := ctx.Deadline()
	return bounded && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// cancel takes k back from the connection. over says that its time has passed. taken is false when the
// reader has it already, and before start has given k an id here: until then k has the id of an earlier
// attempt or of an earlier use, which another call may have on this connection.
func (c *clientConn) cancel(k *call, over bool) (taken bool, outcome Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Get(k.id) != k {
		return false, 0
	}
	c.open.Take(k.id)
	c.busy.Store(int32(c.open.Len()))
	if c.err == nil {
		c.cancelLocked(k, over, nanotime())
	}
	return true, OutcomeUnknown
}

// cancelLocked tells the server that k was given up, unless its time is over: the server ends it then
// by itself. That time begins when the request arrives, so one that was not even written is cancelled.
func (c *clientConn) cancelLocked(k *call, over bool, now int64) {
	if over && k.begin < c.handed {
		return
	}
	var until int64
	if !over && k.stream == nil { // one with a stream has no frame any more
		if left := getUint64(k.frame[timeoutOffset:]); left != 0 {
			until = now + int64(time.Duration(left)*time.Microsecond)
		}
	}
	c.giveUpLocked(k.id, now, until)
}

// ifOpen runs f if nothing has ended k yet, and nothing does meanwhile: k.frame is as it was sent.
func (c *clientConn) ifOpen(k *call, f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Get(k.id) != k {
		return false
	}
	f()
	return true
}

// When callers are kept from writing one by one.
const (
	fewReplies = 3        // fewer of them at once bring too few callers back
	manyOpen   = 128      // where more calls are open, there is enough in every write
	fullWrite  = 32 << 10 // bytes that a caller writes all the same: they need no more company
)

// reserveLocked is for who is about to wake the callers of a batch of replies. They make their next calls one after
// the other, on all processors, and those who write would not wait for those who are still to run: yielding puts a
// goroutine behind what any processor has to do, and so at the front where another one is idle. So the right to write is
// reserved for a goroutine that is made runnable just before the last of the callers. It stands behind the others in the
// queue of this processor, writes what they have sent, and costs nobody a wait where they send nothing. With 100 callers that
// leaves two fifths of the writes, and saves 5 to 7 % of the processor time of both sides.
func (c *clientConn) reserveLocked(replies int) bool {
	if replies < fewReplies || c.open.Len() >= manyOpen || c.writing || c.err != nil {
		return false
	}
	c.writing, c.reserved = true, true
	return true
}

// writeBehind writes what callers have sent while writing was reserved for it.
func (c *clientConn) writeBehind() {
	defer c.wg.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reserved {
		c.reserved = false
		c.drainLocked()
	}
}

// writeRest writes until nothing waits: first what is left of a write that could not go on.
func (c *clientConn) writeRest() {
	defer c.wg.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if out, at := c.rest, c.restAt; out != nil {
		c.rest = nil
		c.mu.Unlock()
		n, err := c.writeOut(out[at:])
		c.mu.Lock()
		c.settleLocked(out, at+n, err)
	} else if c.open.Len() > 1 && c.data == 0 { // those that send on streams go on appending anyway
		c.gatherLocked()
	}
	c.drainLocked()
}

// post sends a small frame without waiting.
func (c *clientConn) post(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.appendLocked(frame)
		c.flushElsewhereLocked()
	}
}

// expireLocked sets the timer that ends calls whose time is over.
func (c *clientConn) expireLocked(at int64) {
	c.expireAt = at
	d := time.Duration(at - nanotime())
	if c.expiry == nil {
		c.expiry = time.AfterFunc(d, c.expire)
	} else {
		c.expiry.Reset(d)
	}
}

// lookCost is how many nanoseconds a call that is open puts off the next look at all that are.
const lookCost = 100

// expire ends the calls whose time is over and sets the timer for the next one.
func (c *clientConn) expire() {
	c.mu.Lock()
	now, next := nanotime(), int64(0)
	var over []*call
	c.open.Each(func(k *call) {
		switch {
		case k.deadline == 0:
		case k.deadline <= now:
			over = append(over, k)
		case next == 0 || k.deadline < next:
			next = k.deadline
		}
	})
	for _, k := range over {
		c.open.Take(k.id)
		k.failed = failure(DeadlineExceeded, OutcomeUnknown, PhaseWait, context.DeadlineExceeded, "no reply within the call's time")
		if c.err == nil {
			c.cancelLocked(k, true, now)
		}
	}
	c.busy.Store(int32(c.open.Len()))
	c.expireAt = 0
	if next != 0 && c.err == nil {
		// A look at all that is open costs some nanoseconds each, so many of them wait longer for the next one.
		c.expireLocked(max(next, now+int64(c.open.Len())*lookCost))
	}
	c.mu.Unlock()
	for _, k := range over {
		k.over()
	}
	if len(over) > 0 {
		c.interruptCaller()
	}
}

// control handles a frame that concerns the connection.
func (c *clientConn) control(h wire.Header, body []byte) error {
	switch h.Type {
	case wire.TypePing:
		v, err := wire.ParsePing(body)
		if err != nil {
			return err
		}
		c.post(wire.AppendPing(nil, wire.TypePong, v))
		return c.pings.note(nanotime(), minPing)
	case wire.TypePong:
		if _, err := wire.ParsePing(body); err != nil {
			return err
		}
		if c.pinged.Swap(0) == 0 {
			return c.pings.note(nanotime(), minPing)
		}
	case wire.TypeDrain:
		if _, err := wire.ParseDrain(body); err != nil {
			return err
		}
		if h.Flags&wire.FlagAck == 0 { // an ACK answers nothing here
			c.drain()
		}
	case wire.TypeClose:
		return closedByPeer(body)
	case wire.TypeData, wire.TypeEnd, wire.TypeWindow:
		return c.streamFrame(h, body)
	case wire.TypeMethod, wire.TypeRequest, wire.TypeCancel:
		return c.called(h, body)
	default:
		if h.Type < wire.FirstSkippable {
			return wire.Errorf(wire.BadFrame, "%s frame from a server", h.Type)
		}
	}
	return nil
}

// drain stops using the connection for new calls, has the host make another, and tells the server.
func (c *clientConn) drain() {
	c.mu.Lock()
	was := c.draining
	c.draining = true
	c.mu.Unlock()
	if was {
		return
	}
	c.host.drained(c)
	c.post(wire.AppendDrain(nil, wire.FlagAck, 0))
}

// end finishes what is open: calls whose bytes were not handed to the transport were not sent.
func (c *clientConn) end(err error) error {
	c.mu.Lock()
	c.failLocked(err)
	err = c.err
	var over []*call
	c.open.Each(func(k *call) { over = append(over, k) })
	for _, k := range over {
		outcome := OutcomeUnknown
		if k.begin >= c.handed {
			outcome = NotSent
		}
		k.failed = failure(Unavailable, outcome, PhaseWait, err, "the connection was lost: %v", err)
	}
	c.open = idtable.Table[*call]{}
	c.busy.Store(0)
	c.cancels.stop()
	c.owed.Store(0)
	if c.expiry != nil {
		c.expiry.Stop()
	}
	c.mu.Unlock()
	for _, k := range over {
		if k.stream != nil {
			k.stream.ends(k.failed, nil)
			continue
		}
		k.over()
	}
	if to := c.callee.Load(); to != nil {
		to.end()
	}
	return err
}

// close ends the connection from this side: no client uses it any more.
func (c *clientConn) close() {
	if c.retire() {
		c.bye(wire.Normal, "")
	}
	c.fail(errConnClosed)
	c.attend() // the goroutine notices the end at once
	c.wg.Wait()
}

// retire keeps new calls off an idle connection. It fails if one is open.
func (c *clientConn) retire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Len() > 0 || c.busyHere() {
		return false
	}
	c.draining = true
	return true
}

// tend keeps the connection alive, or gives it up; called about every second.
func (c *clientConn) tend(now int64) {
	o := &c.host.hostOptions
	c.trim()
	c.trimStreams()
	if c.closeIdle(now) {
		return
	}
	c.tendRenewal(now)
	if since := c.stalledSince(); since != 0 && now-since > int64(o.writeStall) {
		c.fail(fmt.Errorf("a write made no progress for %v (anser.WriteStall)", o.writeStall))
		return
	}
	if c.progress.tooSlow(now, int64(o.writeStall)) {
		c.condemn(wire.Errorf(wire.Timeout, "a frame arrived with less than %d bytes a second for %v (anser.WriteStall)", minProgress, o.writeStall))
		return
	}
	if c.progress.late(now, int64(o.readTimeout)) {
		c.condemn(lateFrame(o.readTimeout))
		return
	}
	if since := c.pinged.Load(); since != 0 {
		if c.progress.lastRead.Load() > since {
			c.pinged.Store(0)
		} else if limit := int64(o.keepaliveAnswer); now-since > limit && now-c.progress.lastRead.Load() > int64(o.keepaliveIdle)+limit {
			c.condemn(wire.Errorf(wire.Timeout, "no answer to a ping for %v (anser.Keepalive)", o.keepaliveAnswer))
		}
		return
	}
	if now-c.progress.lastRead.Load() > pingAfter(o.keepaliveIdle, &c.peer) || c.doubts(now) {
		c.ask(now)
	}
}

// closeIdle closes a connection that nobody has used for the idle timeout, and reports whether it did.
func (c *clientConn) closeIdle(now int64) bool {
	c.mu.Lock()
	quiet := c.idle.note(now, c.lastID, c.open.Len() > 0)
	c.mu.Unlock()
	c.quiet.Store(int64(quiet))
	limit := c.host.idleTimeout
	if c.host.spare.Load() && (limit == 0 || limit > spareAfter) {
		limit = spareAfter
	}
	if limit == 0 || quiet < limit || c.host.handlers != nil || !c.retire() {
		return false
	}
	c.quiet.Store(int64(max(quiet, restAfter)))
	c.host.remove(c, nil)
	c.host.spawn(c.close)
	return true
}

// handshakeClient exchanges prefaces over a new connection, and shows the credential if there is one.
func handshakeClient(nc net.Conn, rd *reader, own wire.Settings, cred *Credential) (wire.Settings, error) {
	hello := wire.AppendSettings(wire.AppendPreface(nil), own)
	if cred != nil {
		hello = wire.AppendAuth(hello, cred.Scheme, cred.Data)
	}
	_, lost := nc.Write(hello)
	peer, err := rd.readPreface() // who does not take the greeting may have said why
	if err == nil {
		err = lost
	}
	return peer, err
}

// closedByPeer turns a CLOSE frame into an error.
func closedByPeer(body []byte) error {
	reason, text, err := wire.ParseClose(body)
	if err != nil {
		return err
	}
	if reason == wire.Normal {
		return errPeerClosed
	}
	return &peerClosed{reason, text}
}

// peerClosed is the end of a connection that the other side gave a reason for.
type peerClosed struct {
	reason wire.Reason
	text   string
}

func (e *peerClosed) Error() string {
	if e.text == "" {
		return "the other side closed the connection: " + e.reason.String()
	}
	return "the other side closed the connection: " + e.text + " (" + e.reason.String() + ")"
}

// isUnauthenticated reports whether a server closed the connection because it does not know this client. An
// [Observer] that refuses a connection has a text of its own.
func isUnauthenticated(err error) bool {
	closed, ok := errors.AsType[*peerClosed](err)
	return ok && closed.reason == wire.Unauthenticated && closed.text == errUnauthenticated.Text
}

var errPeerClosed = errors.New("the other side closed the connection")

// contextFailure tells that the caller's context ended first.
func contextFailure(ctx context.Context, outcome Outcome, phase Phase) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if phase == PhaseWait {
			return failure(DeadlineExceeded, outcome, phase, ctx.Err(), "no reply within the time of the context")
		}
		return failure(DeadlineExceeded, outcome, phase, ctx.Err(), "the call's time is over")
	}
	return failure(Canceled, outcome, phase, ctx.Err(), "the context was cancelled")
}

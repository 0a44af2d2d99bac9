package anser

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/cancelpace"
	"github.com/anser-rpc/anser/internal/idtable"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/sysconn"
	"github.com/anser-rpc/anser/wire"
)

// Offsets of the id, the method's number, the attempt's number and the remaining time in a REQUEST
// frame.
const (
	timeoutOffset = wire.HeaderSize + 8
)

// callerHalf is the half of a connection that makes calls: of a client, or of a server that calls
// its client. Its calls go into the writer of the connection, under the lock of the connection.
type callerHalf struct {
	*conn
	host   *host
	born   mono.Time
	role   readRole
	dialed *clientConn // the connection of this half; nil on a server's connection

	// On a client's connection.
	own       bool        // a stream owns the connection, which ends with the stream
	socket    tryWriter   // of the writing goroutine; nil: a write may block
	behind    func()      // writeBehind; created once, so that starting it does not allocate
	restsFrom mono.Atomic // time since which tend has seen no call, or 0

	// On a server's connection.
	idBit     uint64      // set in the ids that a server chooses; 0 on a client's connection
	successor peerDrainer // asks the client for another connection
	trust     lapser      // of the client; nil: without authentication
	aside     bool        // the identity has ended, and other connections take the calls; guarded by the host's mu

	// Guarded by mu.
	lastID uint64
	open   idtable.Table[*call]
	naming
	draining    bool // takes no more calls
	expiry      *time.Timer
	expireAt    mono.Time // time to which expiry is set, or 0
	rest        []byte    // the remainder of a write that would block, for writeRest
	restAt      int       // bytes of rest that were written
	reserved    bool      // writing is set for writeBehind, which has not started yet
	cancels     cancelpace.Pacer
	cancelTimer *time.Timer // runs while CANCELs wait

	busy      atomic.Int32 // number of open calls, for choosing a connection
	owed      atomic.Int32 // number of CANCELs that wait for their turn
	streaming atomic.Int32 // number of open streams; busy includes them
	waiting   atomic.Int32 // KiB that wait to be written, for growing
	lending   atomic.Int32 // KiB of the payload that is lent, or 0
}

// tryWriter writes what a connection accepts without blocking.
type tryWriter interface {
	TryWrite(p []byte) (taken int, err error)
}

// newTryWriter returns nil for a connection whose writes may block.
func newTryWriter(nc net.Conn) tryWriter {
	if w, ok := nc.(tryWriter); ok { // of a Transport's Wrap
		return w
	}
	if w := sysconn.NewWriter(nc); w != nil {
		return w
	}
	return nil
}

func (c *callerHalf) init(base *conn, h *host) {
	c.conn, c.host, c.born = base, h, mono.Now()
}

// start sends the attempt k. If it fails, nothing was sent and the caller keeps k; otherwise one
// value arrives on k.done, unless cancel takes the call back.
func (c *callerHalf) start(ctx context.Context, k *call, m *methodName) *Error {
	if uint64(len(k.frame)+len(k.lent)-wire.HeaderSize) > c.peer.MaxFrame {
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
	if k.lent != nil {
		if err := c.awaitTurnLocked(ctx, k); err != nil {
			c.mu.Unlock()
			return err
		}
	}
	if c.draining || !c.takesFramesLocked() {
		err := c.goneLocked()
		c.mu.Unlock()
		return err
	}
	if c.trust != nil && c.trust.lapsed(mono.Now()) {
		c.mu.Unlock()
		return clientLapsed(NotSent)
	}
	if n := c.open.Len() + c.cancels.Owed(); uint64(n) >= c.peer.MaxCalls {
		c.mu.Unlock()
		return failure(ResourceExhausted, NotSent, PhaseWrite, nil, "%d calls are open on the connection, the server's limit (anser.MaxCalls)", n)
	}
	if k.stream != nil {
		if n := c.streaming.Load(); uint64(n) >= c.peer.MaxStreams || c.dialed == nil {
			c.mu.Unlock()
			if c.peer.MaxStreams == 0 || c.dialed == nil {
				return failure(Unimplemented, NotSent, PhaseWrite, nil, "the other side offers no streams (anser.MaxStreams; a client takes none)")
			}
			return failure(ResourceExhausted, NotSent, PhaseWrite, nil, "%d streams are open on the connection and the server allows %d (anser.MaxStreams)", n, c.peer.MaxStreams)
		}
	}
	k.patient = k.pending == nil && ctx.Done() == nil // Done may have a cost
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
	putUint64(c.buf[at+idOffset:], k.id|c.idBit)
	putUint32(c.buf[at+methodOffset:], number)
	k.begin = c.appended
	c.appended += uint64(len(k.frame))
	switch {
	case k.lent != nil:
		c.lendCallLocked(at, k)
	case c.reserved && len(c.buf) >= fullWrite && k.stream == nil && k.pending == nil && c.socket != nil:
		c.reserved = false // so writeBehind does nothing
		c.writeLocked(ctx, k)
	case c.writing:
	case k.stream != nil || k.pending != nil:
		c.flushInBackgroundLocked() // the caller most likely sends more in the meantime
	default:
		c.writeLocked(ctx, k)
	}
	c.mu.Unlock()
	return nil
}

func (c *callerHalf) tooLong(k *call) *Error {
	whose := "server's"
	if c.idBit != 0 {
		whose = "client's"
	}
	return failure(ResourceExhausted, NotSent, PhaseWrite, nil, "the request of %d bytes is over the %s limit of %s: %s, or send less",
		len(k.frame)+len(k.lent)-wire.HeaderSize, whose, frameLimit(c.peer.MaxFrame), raiseOn(c.idBit != 0))
}

// goneLocked returns why the connection takes no call.
func (c *callerHalf) goneLocked() *Error {
	if c.err == nil {
		return failure(Unavailable, NotSent, PhaseWrite, nil, "the connection takes no more calls")
	}
	return failure(Unavailable, NotSent, PhaseWrite, c.err, "the connection was lost: %v", c.err)
}

// numberLocked returns the method's number on this connection, and announces the name the first
// time. It is 0 if the connection has no number left.
func (c *callerHalf) numberLocked(m *methodName) uint32 {
	if int(m.number) < len(c.numbers) && c.numbers[m.number] != 0 {
		return c.numbers[m.number]
	}
	if m.number == maxNumberedMethods && c.further[m.name] != 0 {
		return c.further[m.name]
	}
	return c.nameLocked(m)
}

// wait returns when the attempt is over. If the context ends first, wait takes the call back and
// tells the server.
func (c *callerHalf) wait(ctx context.Context, k *call) *Error {
	done := ctx.Done()
	if done == nil {
		c.readForCaller(k)
		return k.failed
	}
	c.ensureReader()
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

// cancel takes k back from the connection. over reports that its deadline has passed. taken is
// false if the reader goroutine already has k, or if start has not yet given k an id here: until
// then, k has the id of an earlier attempt or of an earlier use, which may belong to another call
// on this connection.
func (c *callerHalf) cancel(k *call, over bool) (taken bool, outcome Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Get(k.id) != k {
		return false, 0
	}
	c.open.Take(k.id)
	c.busy.Store(int32(c.open.Len()))
	c.cancelLocked(k, over, mono.Now())
	return true, OutcomeUnknown
}

// cancelLocked tells the server that k was given up. After its deadline there is no need: the
// server ends the call by itself. The server's time begins when the request arrives, so a call
// that was not even written is cancelled.
func (c *callerHalf) cancelLocked(k *call, over bool, now mono.Time) {
	if !c.takesFramesLocked() || over && k.begin < c.handed {
		return
	}
	var until mono.Time
	if !over && k.stream == nil { // a call with a stream has no frame anymore
		if left := getUint64(k.frame[timeoutOffset:]); left != 0 {
			until = now.Add(time.Duration(left) * time.Microsecond)
		}
	}
	c.giveUpLocked(k.id, now, until)
}

// awaits reports whether the answer to a call is due that a frame is. It returns an error if the
// call was never made.
func (c *callerHalf) awaits(h wire.Header) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Get(h.ID) != nil {
		return true, nil
	}
	if h.ID > c.lastID {
		return false, neverMade(h.Type, h.ID)
	}
	return false, nil
}

// ifOpen runs f if k has not ended, and k cannot end meanwhile: k.frame is as it was sent.
func (c *callerHalf) ifOpen(k *call, f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Get(k.id) != k {
		return false
	}
	f()
	return true
}

// end fails the open calls after the connection has ended. Calls whose bytes were not handed to
// the transport were not sent.
func (c *callerHalf) end(err error) error {
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
	c.dropCancelsLocked()
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
	return err
}

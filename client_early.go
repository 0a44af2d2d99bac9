package anser

import (
	"context"
	"errors"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/wire"
)

// Calls in the first packet of a connection. A call normally waits until the server has answered
// the client's preface: a connection that only the listener's queue has accepted may be reset, and
// a call on it would have an unknown outcome. A call that may run twice, since its method is
// idempotent, need not wait. The call for which a connection is made goes out together with the
// preface, which saves it a round trip. See decision 78.
//
// The server's settings are not known when such a call is sent. So it has no compression, its
// frame is one that every server accepts, and the client does not offer checksums on the
// connection. A server that demands them refuses the connection, which runs nothing, and the next
// one is made in the usual way.

// maxEarly is the size limit of the body of such a REQUEST: every server accepts that much (see
// max_frame in docs/protocol.md §4), and with the preface it fits a packet.
const maxEarly = 1024

// earlyCall is a call that goes out with the first bytes of the connection that is being made. The
// fields are guarded by the mutex of the host.
type earlyCall struct {
	k     *call // not used after left is set
	m     *methodName
	until time.Time // deadline, or zero

	sent mono.Time   // time at which its bytes were made; 0: it did not run
	lost error       // why there is no connection although it was sent and may have run, or nil
	conn *callerHalf // on which it is open, or nil
	left bool        // its caller does not wait any longer, and reads the fields without the mutex
}

// mayBeEarly reports whether the call may go out with the preface of a connection to the host.
func (k *call) mayBeEarly(h *host) bool {
	return k.early && k.pending == nil && k.stream == nil && k.compression == nil && k.lent == nil &&
		len(k.frame)-wire.HeaderSize <= maxEarly && h.takesEarly()
}

// takesEarly reports whether the options of the connections let a call go out before the server
// has answered. An observer may refuse the connection, which it learns of when it is complete, and
// a connection that translates frames has no server with the rules of docs/protocol.md.
func (h *host) takesEarly() bool {
	return !h.checksums && h.handlers == nil && h.wrapper == nil && !h.observers.followConns() && !h.observers.followMessages()
}

// earlyConn is waitConn for a call that may go out with the preface. started reports that it did.
func (h *host) earlyConn(ctx context.Context, k *call, m *methodName, patient, makes bool) (conn *callerHalf, started bool, err *Error) {
	e := &earlyCall{k: k, m: m}
	e.until, _ = ctx.Deadline()
	if k.deadline != 0 {
		if at := time.Now().Add(mono.Until(k.deadline)); e.until.IsZero() || at.Before(e.until) {
			e.until = at
		}
	}
	conn, err = h.waitConn(ctx, k.deadline, patient, makes, e)
	switch {
	case err != nil && e.sent != 0:
		k.early, err.mayHaveRun = false, true // it does not go early again
	case err == nil && e.conn != nil:
		k.beginLate(e.sent)
		started = true
	}
	return conn, started, err
}

// connLocked returns a connection that takes calls, or the one on which e is open. ok is false if
// there is none yet.
func (h *host) connLocked(e *earlyCall) (conn *callerHalf, ok bool) {
	switch list := *h.ready.Load(); {
	case e != nil && e.conn != nil:
		return e.conn, true
	case e != nil && e.lost != nil, len(list) == 0:
		return nil, false
	default:
		h.leaveEarlyLocked(e)
		return list[0], true
	}
}

// proposeLocked makes e the call that goes out with the preface of the connection that is being
// made, unless there is one.
func (h *host) proposeLocked(e *earlyCall) {
	if e != nil && h.early == nil && h.dialing && !h.greeted && !h.waits {
		h.early = e
	}
}

// leaveEarlyLocked notes that the caller of e, if it is not nil, no longer waits for it.
func (h *host) leaveEarlyLocked(e *earlyCall) {
	if e == nil {
		return
	}
	e.left = true
	if h.early == e && e.sent == 0 {
		h.early = nil
	}
}

// leaveEarly notes that the time of e is over. It returns the connection on which e is open, if
// that was made at the same moment: there the call can be cancelled.
func (h *host) leaveEarly(e *earlyCall) *callerHalf {
	if e == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaveEarlyLocked(e)
	return e.conn
}

// greet returns the first bytes on c: the preface, settings and credential, and the call that goes
// with them, if there is one; another call is too late then. offered reports whether the settings
// offer checksums.
func (h *host) greet(c *clientConn, own wire.Settings, cred *Credential) (hello []byte, offered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.early
	if c.own || h.waits {
		e = nil
	}
	if e != nil {
		own.Features &^= wire.FeatureCRC
	}
	hello = wire.AppendSettings(wire.AppendPreface(make([]byte, 0, helloSize)), own)
	if cred != nil {
		hello = wire.AppendAuth(hello, cred.Scheme, cred.Data)
	}
	if !c.own {
		h.greeted = true
	}
	if e == nil {
		return hello, true
	}
	e.sent = mono.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.numberLocked(e.m)
	c.lastID++
	c.appendLocked(e.k.frame)
	frame := c.buf[len(c.buf)-len(e.k.frame):]
	putUint64(frame[idOffset:], c.lastID)
	putUint32(frame[methodOffset:], number)
	if !e.until.IsZero() {
		putUint64(frame[timeoutOffset:], wireTimeout(time.Until(e.until)))
	}
	hello = append(hello, c.buf...)
	c.buf, c.handed = c.buf[:0], c.appended
	return hello, false
}

// endEarlyLocked notes that making the connection has ended; c is nil if it failed with err.
func (h *host) endEarlyLocked(c *clientConn, err error) {
	e := h.early
	h.early, h.greeted = nil, false
	switch {
	case e == nil || e.sent == 0:
	case e.left && err == nil:
		c.giveUp(c.lastID)
	case e.left:
	case err != nil && didNotRun(err):
		e.sent = 0
	case err != nil:
		e.lost = err
	default:
		e.conn = &c.callerHalf
		c.openEarly(e.k)
	}
}

// openEarly enters the call that has gone out with the preface.
func (c *callerHalf) openEarly(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.id, k.begin = c.lastID, 0
	c.open.Put(k.id, k)
	c.busy.Store(1)
	if k.deadline != 0 {
		c.expireLocked(k.deadline)
	}
}

// didNotRun reports whether the failure of a handshake says that the server has run nothing: it
// has sent CLOSE in the place of its settings, or it speaks another version or protocol.
func didNotRun(err error) bool {
	_, closed := errors.AsType[*peerClosed](err)
	_, strange := errors.AsType[*foreign](err)
	return closed || strange || errors.Is(err, errPeerClosed)
}

// demandsChecksums reports whether the server has refused the connection because a call went out
// with the preface, for which the client has not offered checksums. No call does so again.
func (h *host) demandsChecksums(err error) bool {
	closed, ok := errors.AsType[*peerClosed](err)
	if !ok || closed.reason != wire.BadChecksum {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.early
	if e == nil || e.sent == 0 {
		return false
	}
	if !e.left {
		e.sent = 0
	}
	h.early, h.waits = nil, true
	return true
}

// waitFromNowOn makes calls wait for the server's settings: it demands checksums.
func (h *host) waitFromNowOn() {
	h.mu.Lock()
	h.waits = true
	h.mu.Unlock()
}

package anser

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/wire"
)

// How a client's connection is read. With several open calls, the connection's own goroutine
// reads, and wakes the callers. With one call at a time, this would cost each call two switches
// between goroutines, so a caller that waits only for its reply reads it itself, and the goroutine
// is parked. The goroutine takes over when the caller leaves calls of others open, and when the
// connection has been unread for a moment.
const (
	nobodyReads uint32 = iota
	goroutineReads
	callerReads
)

const (
	replyBatch = 64 // replies that are delivered at once
	firstBatch = 4  // initial capacity for replies
	fewSingles = 4  // after this many single replies in a row the goroutine is parked
)

// readRole is the right to read a connection, and the state of its holder.
type readRole struct {
	who   atomic.Uint32
	turns atomic.Uint32 // number of reads by callers
	wake  chan struct{} // tells the goroutine to read; `who` is set before

	// Guarded by the mutex of the pool's standbys.
	listed   bool   // the sweep looks at the connection
	unread   bool   // the connection was unread at the last look
	lastTurn uint32 // value of turns at the last look

	// Owned by the holder.
	started bool // the goroutine was started; a caller that has made the connection may need none
	reader  *reader
	batch   []arrived // as long as needed so far; at most replyBatch
	n       int       // entries of batch
	single  int       // batches of one reply in a row
	err     error     // why a caller could not continue; the goroutine ends the connection
}

func (r *readRole) init(rd *reader) {
	r.reader, r.wake, r.batch = rd, make(chan struct{}, 1), make([]arrived, firstBatch)
	r.who.Store(goroutineReads)
}

// growBatch makes room in the batch, unless it is full. With one caller per connection, room for a
// full batch was a seventh of the memory of the connection.
func (r *readRole) growBatch() bool {
	if len(r.batch) == replyBatch {
		return false
	}
	r.batch = append(r.batch, make([]arrived, min(3*len(r.batch), replyBatch-len(r.batch)))...)
	return true
}

// arrived is a reply or error that was read and not delivered yet.
type arrived struct {
	id    uint64
	kind  wire.Type
	flags wire.Flags
	large bool // its frame has a buffer of its own
	body  []byte
	call  *call
}

// run is the goroutine of the connection.
func (c *clientConn) run() {
	defer c.wg.Done() // enter has added it
	c.read()
}

// read is the work of the connection's goroutine: it delivers replies until the connection ends,
// and then ends the open calls.
func (c *clientConn) read() {
	var err error
	for err == nil {
		if err = c.role.err; err == nil {
			err = c.readWhileBusy()
		}
		if err == nil {
			c.waitForTurn()
		}
	}
	err = c.setCloseReason(err)
	var broken *wire.Error
	if errors.As(err, &broken) {
		c.mu.Lock()
		c.draining = true
		c.mu.Unlock()
		c.sendClose(broken.Reason, broken.Text)
	}
	ended := c.end(err)
	c.role.reader.release()
	c.host.lost(c, err)
	c.host.observers.connClosed(c.info(), ended)
}

// readWhileBusy reads until no call is open and the last calls were such that the next caller may
// read for itself. The goroutine then no longer has the role.
func (c *clientConn) readWhileBusy() error {
	for {
		alone, err := c.handleRead()
		if err != nil {
			return err
		}
		if alone && c.release() {
			return nil
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
}

// release gives up the role, unless a call began in the meantime, which may rely on the holder.
func (c *callerHalf) release() bool {
	c.role.who.Store(nobodyReads)
	// A caller enters its call and then checks whether the role is held; here the order is
	// reversed, so one of the two sees the other.
	return c.busy.Load() == 0 || !c.role.who.CompareAndSwap(nobodyReads, goroutineReads)
}

// isRead reports whether the role has a holder that will deliver the reply of a call started
// before.
func (c *callerHalf) isRead() bool { return c.role.who.Load() != nobodyReads }

// ensureReader ensures that the connection is read while a caller waits that cannot read itself.
func (c *callerHalf) ensureReader() {
	if c.role.who.Load() == nobodyReads && c.role.who.CompareAndSwap(nobodyReads, goroutineReads) {
		c.dialed.wakeReader()
	}
}

// wakeReader makes the goroutine, which has the role, read. It does not block: only the goroutine
// that has set the role calls it.
func (c *clientConn) wakeReader() {
	if c.role.started {
		c.role.wake <- struct{}{}
		return
	}
	c.role.started = true
	go c.run()
}

// finishReading makes the goroutine notice the end of the connection. If there is none yet, the
// caller does its work.
func (c *clientConn) finishReading() {
	switch {
	case c.role.who.Load() != nobodyReads || !c.role.who.CompareAndSwap(nobodyReads, goroutineReads):
	case c.role.started:
		c.wakeReader()
	default:
		c.role.started = true
		c.run()
	}
}

// readForCaller returns when k is over. If the role is free, the caller reads the connection.
func (c *callerHalf) readForCaller(k *call) {
	if c.isRead() || !c.role.who.CompareAndSwap(nobodyReads, callerReads) {
		<-k.done
		return
	}
	c.role.turns.Add(1)
	for {
		alone, err := c.dialed.handleRead()
		if err != nil {
			c.role.err = err
			break
		}
		select {
		case <-k.done:
			started := c.role.started
			switch {
			case !alone || !c.release():
				c.passToReader()
			case !started: // no goroutine is parked that the sweep would know
				c.host.pool.standbys.enlist(c.dialed)
			}
			return
		default:
		}
		if err := c.fill(); err != nil {
			c.role.err = err
			break
		}
	}
	c.passToReader()
	<-k.done
}

// passToReader lets the goroutine read.
func (c *callerHalf) passToReader() {
	c.role.who.Store(goroutineReads)
	c.dialed.wakeReader()
}

// interruptCaller makes a caller that reads check whether its call is over.
func (c *callerHalf) interruptCaller() {
	if c.role.who.Load() == callerReads {
		c.nc.SetReadDeadline(time.Now())
	}
}

// fill reads once. It removes a deadline that interruptCaller set, perhaps for a former holder of
// the role. A deadline that condemn set remains: condemn sets its verdict first, so a check after
// the removal always sees it.
func (c *callerHalf) fill() error {
	err := c.role.reader.fill()
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	c.nc.SetReadDeadline(time.Time{})
	if c.verdict.Load() != nil {
		return err
	}
	return nil
}

// handleRead handles all frames that have been read. alone reports that no call is open, and that
// the last replies came one by one, for callers that could have read for themselves.
func (c *clientConn) handleRead() (alone bool, err error) {
	r := &c.role
	for {
		h, body, ok, err := r.reader.next()
		if err == nil && ok && (h.Type == wire.TypeReply || h.Type == wire.TypeError) {
			if r.n == len(r.batch) && !r.growBatch() {
				if _, err := c.deliver(false); err != nil {
					return false, err
				}
			}
			r.batch[r.n] = arrived{id: h.ID, kind: h.Type, flags: h.Flags, large: r.reader.isLarge(), body: body}
			r.n++
			continue
		}
		if r.n > 0 {
			// Frames before a fault are delivered.
			quiet, e := c.deliver(true)
			if e != nil {
				return false, e
			}
			alone = quiet
		}
		if err != nil {
			return false, err
		}
		if !ok {
			return alone && r.reader.r == r.reader.w, nil
		}
		if err := c.control(h, body); err != nil {
			return false, err
		}
	}
}

// deliver hands the batch to the waiting calls. last reports that no more frames have been read:
// the callers most likely return now, and must not write one by one; see reserveLocked.
func (c *callerHalf) deliver(last bool) (alone bool, broken error) {
	batch := c.role.batch[:c.role.n]
	c.role.n = 0
	c.pings = pingLimit{}
	c.mu.Lock()
	for i := range batch {
		if batch[i].call = c.open.Take(batch[i].id); batch[i].call == nil {
			c.answeredLocked(batch[i].id)
		}
	}
	made := c.lastID
	c.busy.Store(int32(c.open.Len()))
	reserved := last && c.reserveLocked(len(batch))
	// With many callers, all open calls may end at once; their callers return together.
	if c.role.single++; len(batch) > 1 || c.open.Len() > 0 {
		c.role.single = 0
	}
	alone = c.role.single >= fewSingles
	c.mu.Unlock()
	for i := range batch {
		if reserved && i == len(batch)-1 {
			c.background.Add(1)
			go c.behind()
		}
		a := &batch[i]
		k := a.call
		if k == nil {
			if a.id > made {
				broken = errors.Join(broken, neverMade(a.kind, a.id))
			}
			continue
		}
		if k.stream != nil {
			broken = errors.Join(broken, c.streamAnswered(k.stream, a))
			alone, a.call, a.body = false, nil, nil
			continue
		}
		if err := k.accept(a, c.host.maxMessage, c.role.reader); err != nil {
			broken = errors.Join(broken, err)
			k.failed = failure(Internal, OutcomeUnknown, PhaseWait, err, "the server broke the protocol: %v", err)
		}
		alone = alone && k.patient
		a.call, a.body = nil, nil
		k.over()
	}
	return alone, broken
}

// neverMade returns what is wrong with an answer to a call that this side has not made.
func neverMade(kind wire.Type, id uint64) error {
	reason := wire.BadID
	if id>>63 != 0 { // the id of a call in the other direction
		reason = wire.BadFrame
	}
	return wire.Errorf(reason, "%s for the call %d, which was never made", kind, id)
}

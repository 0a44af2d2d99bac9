package anser

import "context"

// writeLocked writes the waiting bytes on the goroutine of k's caller, which saves a switch
// between goroutines. It writes only what the transport accepts at once, and only while k is open:
// a peer that does not read, or other callers that continue to make calls, must not delay the
// caller. writeRest writes the remainder.
func (c *callerHalf) writeLocked(ctx context.Context, k *call) {
	if c.socket == nil {
		c.flushInBackgroundLocked()
		return
	}
	if !c.writing {
		c.writing = true
		if c.open.Len() > 1 {
			c.yieldToAppendersLocked()
		}
	}
	for (len(c.buf) > 0 || c.lent != nil) && c.err == nil {
		if c.lent != nil {
			c.writeInBackgroundLocked()
			return
		}
		out := c.takeLocked()
		c.mu.Unlock()
		n, err := c.try(out)
		c.mu.Lock()
		if (n < len(out) || c.checksums.holds()) && err == nil && c.err == nil {
			c.rest, c.restAt = out, n
			c.writeInBackgroundLocked()
			return
		}
		c.settleLocked(out, n, err)
		if len(c.buf) > 0 && c.err == nil && (len(k.done) > 0 || ctx.Err() != nil) {
			c.writeInBackgroundLocked()
			return
		}
	}
	c.stopLocked()
}

// try writes what the transport accepts at once.
func (c *callerHalf) try(out []byte) (taken int, err error) {
	if c.checksums != nil {
		return c.trySealed(out)
	}
	return c.socket.TryWrite(out)
}

// trySealed is socket.try with checksums. The sealer may hold a part of the bytes that were
// accepted.
func (c *callerHalf) trySealed(frames []byte) (taken int, err error) {
	for {
		out, used := c.checksums.rest(frames[taken:])
		taken += used
		if len(out) == 0 {
			return taken, nil
		}
		n, err := c.socket.TryWrite(out)
		c.checksums.took(n)
		if err != nil || n < len(out) {
			return taken, err
		}
	}
}

// reserveLocked is called before the callers of a batch of replies are woken. They make their next
// calls one after the other, on all processors, and a caller that writes would not wait for the
// callers that have not run yet: yielding puts a goroutine behind the work of every processor, and
// so at the front if one is idle. The right to write is therefore reserved for a goroutine that is
// made runnable just before the last of the callers. It runs after the others in this processor's
// queue, writes what they have sent, and delays no caller if they send nothing. With 100 callers
// this leaves two fifths of the writes, and saves 5 to 7 % of the processor time of both sides.
func (c *callerHalf) reserveLocked(replies int) bool {
	if replies < fewReplies || c.open.Len() >= manyOpen || c.writing || c.err != nil {
		return false
	}
	c.writing, c.reserved = true, true
	return true
}

// The conditions under which callers do not write one by one.
const (
	fewReplies = 3        // fewer replies at once bring back too few callers
	manyOpen   = 128      // with more open calls, every write is large enough
	fullWrite  = 32 << 10 // a caller writes this many bytes anyway: they need no batching
)

// writeBehind writes what callers have sent while writing was reserved for it.
func (c *callerHalf) writeBehind() {
	defer c.background.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reserved {
		c.reserved = false
		c.drainLocked()
	}
}

// writeRest writes until nothing waits: first the remainder of a write that would block.
func (c *callerHalf) writeRest() {
	defer c.background.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if out, at := c.rest, c.restAt; out != nil {
		c.rest = nil
		c.mu.Unlock()
		n, err := c.writeOut(out[at:])
		c.mu.Lock()
		c.settleLocked(out, at+n, err)
	} else if c.open.Len() > 1 && c.data == 0 && c.lent == nil { // callers that send on streams continue to append anyway
		c.yieldToAppendersLocked()
	}
	c.drainLocked()
}

// awaitRoomLocked waits until the write buffer is below its limit, within the time of the call.
// The call is not open yet, so nothing else ends it.
func (c *callerHalf) awaitRoomLocked(ctx context.Context, k *call) *Error {
	if len(c.buf) <= maxBuffered || !c.writing {
		return nil
	}
	if k.atOnce && k.pending != nil {
		return errWouldWait
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
		bounded = k.stream.ctx // the other context bounds the opening
	}
	k.shrinkTimeout(bounded)
	return nil
}

// awaitTurnLocked waits until no other large message is written, within the time of the call, which
// is not open yet.
func (c *callerHalf) awaitTurnLocked(ctx context.Context, k *call) *Error {
	if c.lent == nil {
		return nil
	}
	bounded, cancel := k.bound(ctx)
	defer cancel()
	if err := c.awaitLoanLocked(bounded); err != nil && c.err == nil {
		return contextFailure(bounded, NotSent, PhaseWrite)
	}
	k.shrinkTimeout(bounded)
	return nil
}

// lendCallLocked makes the request of k the rest of the frame at the end of buf, which begins at a
// position. It is written on another goroutine, so that the caller can return at any time.
func (c *callerHalf) lendCallLocked(head int, k *call) {
	k.loan = c.lendLocked(head, k.lent)
	k.loan.gauge = &c.lending
	c.lending.Store(int32(len(k.lent) >> 10))
	c.flushInBackgroundLocked()
}

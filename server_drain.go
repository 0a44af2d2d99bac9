package anser

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/anser-rpc/anser/internal/idtable"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
	"github.com/anser-rpc/anser/wire"
)

// drained handles the client's announcement that it opens no more calls.
func (c *serverConn) drained(s *reading, flags wire.Flags) error {
	// Replies first: if no call is open after this, CLOSE follows.
	if err := c.flush(s); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if flags&wire.FlagAck != 0 && !c.draining {
		return nil // it answers nothing
	}
	c.acked, c.draining = true, true
	if !s.drained {
		s.drained, s.spared = true, s.inParts
	}
	return nil
}

// drainIdle drains a connection on which no call was made for the idle timeout, and returns when
// to check again.
func (c *serverConn) drainIdle(now mono.Time) (due mono.Time) {
	limit := c.server.o.idleTimeout
	if limit == 0 || c.peer.Session != 0 { // a client with handlers waits for calls
		return upkeep.Never
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A handler on the reader goroutine changes the turn, all others are counted.
	turn := readToken(c.token.Load())
	guests, busy := c.protocol.guests()
	quiet := c.idle.note(now, uint64(turn)+c.opened+guests, turn.running() || c.running.Len()+c.detached > 0 || c.arriving || busy)
	switch {
	case c.draining:
		return upkeep.Never
	case turn.running() || c.detached > c.streaming || c.arriving || busy: // its end may move no byte; that of a stream stirs
		return now.Add(upkeep.Interval)
	case quiet < limit:
		return after(c.idle.since, limit)
	}
	c.spawn(func() { c.startDrain(c.server.o.grace) })
	return upkeep.Never
}

// startDrain tells the client to use another server.
func (c *serverConn) startDrain(grace time.Duration) {
	c.mu.Lock()
	was := c.draining
	c.draining = true
	c.acked = c.acked || c.protocol != nil && !c.protocol.hooks.Gradual
	c.mu.Unlock()
	switch {
	case was:
	case c.protocol != nil:
		c.protocol.hooks.Drain(grace)
	default:
		c.sendControl(wire.AppendDrain(nil, 0, uint32(min(max(grace.Milliseconds(), 0), 1<<31))))
	}
	c.finishDrain(nil)
}

// finishDrain closes a connection that the client no longer uses and on which no call is open. It
// is called whenever the last call may have ended, by the reader goroutine with its state, after it
// has sent the replies. After the client's DRAIN was read, no handler runs inline but that of a
// REQUEST that was arriving in PARTs.
func (c *serverConn) finishDrain(s *reading) {
	if c.protocol != nil {
		c.protocol.endDrained()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.acked {
		return
	}
	if s != nil {
		c.arriving = s.inParts != 0 && s.inParts == s.spared
	}
	if c.closing || c.arriving || c.running.Len() > 0 || c.err != nil || c.callsClient() {
		return
	}
	c.closing = true
	c.buf = wire.AppendClose(c.buf, wire.Normal, "")
	c.shut, c.inOrder = true, true
	if !c.writing {
		c.flushLocked(false)
	}
}

// end closes the connection after its reader has stopped, and cancels the running calls.
func (c *serverConn) end(s *reading, err error) {
	err = c.setCloseReason(err)
	c.token.Store(endedToken)
	if len(s.out) > 0 || s.greets {
		c.nc.SetWriteDeadline(time.Now().Add(byeBound))
		c.flush(s)
	}
	c.mu.Lock()
	said := c.closing // CLOSE was sent already
	c.closing = true  // no answer is sent any more
	c.mu.Unlock()
	c.cancelAll(err)
	if c.auth != nil {
		c.auth.end()
	}
	var broken *wire.Error
	if errors.As(err, &broken) {
		c.server.stats.close(broken.Reason)
		if broken.Reason == wire.FrameTooLarge {
			c.server.stats.hit(limitMessage)
		}
		c.server.log.Debug("closed a connection", "peer", c.nc.RemoteAddr(), "err", err)
		if !said {
			c.sendClose(broken.Reason, broken.Text)
		}
		halfClose(c.nc)
	} else if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, errPeerClosed) {
		c.server.log.Debug("lost a connection", "peer", c.nc.RemoteAddr(), "err", err)
	}
	c.fail(err)
	if c.session != nil {
		c.leave(err)
	}
	s.release()
	s.leaveDesk()
	c.mu.Lock()
	err = c.err
	c.mu.Unlock()
	c.server.o.observers.connClosed(c.info(), err)
	c.server.remove(c)
}

func (c *calleeHalf) cancelAll(err error) {
	c.mu.Lock()
	var lost []*callContext
	c.running.Each(func(ctx *callContext) {
		// The caller of a call with a key comes back for the reply, over another connection.
		if ctx.extras == nil || ctx.extras.key == "" || c.server.stopping.Load() {
			lost = append(lost, ctx)
		} else if c.auth != nil {
			c.server.orphans.add(ctx) // while c.mu is held: finishDetached removes it afterwards
			c.server.duties.Stir()
		}
	})
	c.running = idtable.Table[*callContext]{}
	c.mu.Unlock()
	c.unread.End()
	for _, ctx := range lost {
		if st := ctx.stream(); st != nil {
			st.stop(failure(Unavailable, OutcomeUnknown, PhaseWait, err, "the connection was lost: %v", err))
		}
		ctx.end(context.Canceled)
	}
}

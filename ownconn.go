package anser

import (
	"context"
	"fmt"
)

// connForStream returns a connection for a stream that is being opened: one of those that the host has, or
// where the transport says so ([Transport.StreamsApart]) one of the stream's own.
func (h *host) connForStream(ctx context.Context) (*clientConn, *Error) {
	if h.streamsApart {
		return h.ownConn(ctx)
	}
	if c := h.pickStreamConn(); c != nil {
		return c, nil
	}
	return h.waitConn(ctx)
}

// ownConn makes a connection that takes no calls of others. Its user ends it with disown.
func (h *host) ownConn(ctx context.Context) (*clientConn, *Error) {
	type result struct {
		conn *clientConn
		err  error
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, failure(Unavailable, NotSent, PhaseDial, nil, "the address %s is not used any more", h.address)
	}
	if h.failures > 0 && h.retry != nil {
		err := h.lastErr
		h.mu.Unlock()
		return nil, failure(Unavailable, NotSent, PhaseDial, err, "%v", err)
	}
	made := make(chan result, 1)
	h.wg.Go(func() {
		c, err := h.connect()
		h.mu.Lock()
		if err == nil && h.closed {
			c.nc.Close()
			err = errConnClosed
		}
		tell := func() {}
		if err != nil {
			h.failedLocked(err)
			tell = h.changedLocked()
		} else {
			c.own = true
			h.all[c] = struct{}{}
			c.wg.Go(c.read)
		}
		h.mu.Unlock()
		if err != nil {
			h.observers.connFailed(ConnInfo{Address: h.instance()}, err)
		}
		tell()
		made <- result{c, err}
	})
	h.mu.Unlock()
	select {
	case r := <-made:
		if r.err != nil {
			return nil, failure(Unavailable, NotSent, PhaseDial, r.err, "%v", r.err)
		}
		return r.conn, nil
	case <-ctx.Done():
		h.spawn(func() {
			if r := <-made; r.err == nil {
				r.conn.close()
			}
		})
		e := contextFailure(ctx, NotSent, PhaseDial)
		e.Message = fmt.Sprintf("no connection to %s yet: %s", h.address, e.Message)
		return nil, e
	}
}

// disown ends a connection that ownConn made, and leaves others as they are.
func (c *clientConn) disown() {
	if c.own {
		c.host.spawn(c.close)
	}
}

package anser

import "context"

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
	if err := h.uselessLocked(); err != nil {
		h.mu.Unlock()
		return nil, err
	}
	made := make(chan result, 1)
	h.wg.Go(func() {
		c, err := h.connect()
		made <- result{c, h.enter(c, err, true)}
	})
	h.mu.Unlock()
	select {
	case r := <-made:
		if r.err != nil {
			return nil, failure(dialCode(r.err), NotSent, PhaseDial, r.err, "%v", r.err)
		}
		return r.conn, nil
	case <-ctx.Done():
		h.spawn(func() {
			if r := <-made; r.err == nil {
				r.conn.close()
			}
		})
		return nil, h.notYet(ctx)
	}
}

// disown ends a connection that ownConn made, and leaves others as they are.
func (c *clientConn) disown() {
	if c.own {
		c.host.spawn(c.close)
	}
}

package anser

import (
	"context"
	"slices"
	"time"
)

// connForStream returns a connection for a stream that is being opened: a shared one of the host,
// or, if the transport requires it ([Transport.StreamsApart]), a connection used by the stream
// only.
//
// A caller that is patient waits for a connection that is late, too.
func (h *host) connForStream(ctx context.Context, patient bool) (*callerHalf, *Error) {
	if h.streamsApart {
		return h.dedicatedConn(ctx, patient)
	}
	if c := h.pickStreamConn(); c != nil {
		return c, nil
	}
	return h.waitConn(ctx, 0, patient, false, nil)
}

// pickStreamConn returns the connection with the fewest streams, or nil if none is ready. It makes
// more connections when needed.
func (h *host) pickStreamConn() *callerHalf {
	list := *h.ready.Load()
	if len(list) == 0 {
		return nil
	}
	c := slices.MinFunc(list, func(a, b *callerHalf) int { return int(a.streaming.Load() - b.streaming.Load()) })
	if c.streamsFull() || len(list) < h.wantConns() && c.busy.Load() > 0 {
		h.grow(list)
	}
	return c
}

// streamsFull reports whether with one more the connection has nearly as many streams as the
// server allows.
func (c *callerHalf) streamsFull() bool {
	return float64(c.streaming.Load()+1) >= growAt*float64(c.peer.MaxStreams)
}

// dedicatedConn makes a connection that takes no calls of others. Its user ends it with disown.
func (h *host) dedicatedConn(ctx context.Context, patient bool) (*callerHalf, *Error) {
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
		c, err := h.connect(true)
		made <- result{c, h.enter(c, err, true)}
	})
	stood, wait := h.stood, h.patienceLocked()
	h.mu.Unlock()
	var late <-chan time.Time
	if !patient {
		t := time.NewTimer(wait)
		defer t.Stop()
		late = t.C
	}
	var fault *Error
	select {
	case r := <-made:
		if r.err != nil {
			return nil, unreached(r.err, stood)
		}
		return &r.conn.callerHalf, nil
	case <-late:
		fault = h.lateFor(wait)
	case <-ctx.Done():
		fault = h.notYet(ctx)
	}
	h.spawn(func() {
		if r := <-made; r.err == nil {
			r.conn.close()
		}
	})
	return nil, fault
}

// closeDedicated ends a connection that ownConn made, and leaves others as they are.
func (c *callerHalf) closeDedicated() {
	if c.own {
		c.host.spawn(c.dialed.close)
	}
}

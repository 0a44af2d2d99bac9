package anser

import (
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// The time that a call waits for a connection to the picked instance before it looks for another
// one. The idea is that of Happy Eyeballs (RFC 8305), whose delay is 250 ms too: an attempt that
// was not sent can go anywhere.
const (
	firstPatience = 250 * time.Millisecond // where nothing is known of the instance
	leastPatience = 100 * time.Millisecond // for one that usually connects faster
	mostPatience  = time.Second            // for one that usually takes long
	waryPatience  = 25 * time.Millisecond  // while another instance of a client is late
	patienceTimes = 4                      // the usual time
)

// patienceLocked returns how long connecting may take before the host is late.
func (h *host) patienceLocked() time.Duration {
	least, d := leastPatience, firstPatience
	now := mono.Now()
	for w := range h.watchers {
		if w.Wary(now) {
			least, d = waryPatience, waryPatience
		}
	}
	if h.usual > 0 {
		d = min(max(patienceTimes*h.usual, least), mostPatience)
	}
	return d
}

// awaitLocked starts the timer that marks the connection being made as late. An additional
// connection has no timer.
func (h *host) awaitLocked() {
	if len(*h.ready.Load()) > 0 {
		return
	}
	began := h.tried
	h.patience = time.AfterFunc(h.patienceLocked(), func() { h.noteLate(began) })
}

// arrivedLocked notes the end of making a connection.
func (h *host) arrivedLocked(err error) {
	h.late = false
	if h.patience != nil {
		h.patience.Stop()
		h.patience = nil
	}
	if err != nil {
		return
	}
	took := max(mono.Since(h.tried), 1)
	if h.usual == 0 {
		h.usual = took
	}
	h.usual += (took - h.usual) / 4
}

// noteLate records that the connection begun at a given time is late: waiting and later callers go
// elsewhere.
func (h *host) noteLate(began mono.Time) {
	h.mu.Lock()
	if !h.dialing || h.closed || h.tried != began || len(*h.ready.Load()) > 0 {
		h.mu.Unlock()
		return
	}
	h.late = true
	tell := h.changedLocked()
	h.mu.Unlock()
	tell()
}

// lateLocked is the error of an attempt that does not wait any longer.
func (h *host) lateLocked() *Error { return h.lateFor(mono.Since(h.tried)) }

func (h *host) lateFor(d time.Duration) *Error {
	return failure(Unavailable, NotSent, PhaseDial, nil, "no connection to %s within %v", h.address, d.Round(time.Millisecond))
}

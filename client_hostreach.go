package anser

import (
	"github.com/anser-rpc/anser/internal/cluster"
	"github.com/anser-rpc/anser/internal/mono"
)

// This file has the methods of a host for the cluster: see cluster.Host.

var _ cluster.Host = (*host)(nil)

// Reach returns what is known about reaching the host.
func (h *host) Reach() cluster.Reach {
	h.mu.Lock()
	defer h.mu.Unlock()
	return cluster.Reach{Ready: len(*h.ready.Load()) > 0, Failed: h.failures > 0, Late: h.late, Met: h.stood}
}

// Connected reports whether a connection takes calls.
func (h *host) Connected() bool { return len(*h.ready.Load()) > 0 }

// Silent reports whether the host does not answer pings.
func (h *host) Silent() bool { return h.silent.Load() }

// Judge says that some client can do without this host, and wants to know when it is silent.
func (h *host) Judge() { h.judged.Store(true) }

// SetSpare says whether unused connections end early.
func (h *host) SetSpare(spare bool) {
	if !spare {
		h.spare.Store(false)
		return
	}
	if h.spare.Swap(true) {
		return
	}
	for _, c := range *h.ready.Load() {
		c.upkeep.Stir()
	}
}

// RedialNow makes a connection now if the host waits for its turn to try again, though not more
// often than every hurryEvery.
func (h *host) RedialNow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mayConnectLocked() && h.retry != nil && mono.Since(h.tried) > hurryEvery {
		h.connectLocked()
	}
}

// Seen returns the state of the host for a hunt that began at the given time, and the time and the
// error of the last failed attempt to connect.
func (h *host) Seen(began mono.Time) cluster.Sight {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(*h.ready.Load()) > 0 {
		return cluster.Sight{State: cluster.Ready}
	}
	s := cluster.Sight{State: cluster.Failed, Tried: h.tried, Err: h.lastErr}
	if s.Err != nil {
		s.Obstacle = int(obstacleOf(h.lastErr, h.stood))
	}
	switch {
	case h.dialing || h.dial == nil:
		s.State = cluster.Dialing
	case h.triable(began):
		s.State = cluster.Idle
	}
	return s
}

// triable reports whether a hunt that began at the given time may dial the host: once per hunt, and
// not right after another attempt.
func (h *host) triable(began mono.Time) bool {
	return !h.closed && (h.tried == 0 || h.tried < began && mono.Since(h.tried) > hurryEvery)
}

// Try starts connecting for a hunt that began at the given time, and keeps trying as for a call.
func (h *host) Try(began mono.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mayConnectLocked() && len(*h.ready.Load()) == 0 && h.triable(began) {
		h.used = true
		h.connectLocked()
	}
}

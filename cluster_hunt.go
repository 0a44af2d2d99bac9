package anser

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
)

// hunt searches for a reachable instance on behalf of all waiting calls of a client that may use
// the same instances and found none connected. It dials two more instances, and then twice as many
// with each step that yields no connection, each instance once; the calls go to the first that
// connects. One live instance among a thousand is found in less than a second if the others are
// silent, and sooner if they refuse. Where instances are healthy no hunt begins, as the first
// connection is made before its host counts as late (client_hostpatience.go).
type hunt struct {
	route *Route
	began mono.Time
	width int // instances to dial in the next step
	step  []*endpoint
	done  chan struct{} // closed at the end
	left  chan struct{} // gets a value when no call waits any more
	// Set before done is closed: why nothing can be reached now, or nil to look again.
	fault *Error

	waiting int // number of calls; guarded by the mutex of the cluster
}

const (
	huntFirst = 2
	huntMost  = 256 // limit of a step
	huntStep  = 25 * time.Millisecond
)

// reach returns a connected endpoint for a call that may use another one than was picked for it. It
// waits until there is one. Endpoints in tried are used only if there is no other.
func (c *Client) reach(ctx context.Context, k *call, m *clientMethod, tried []*balance.Endpoint) (*endpoint, *Error) {
	for {
		v, fault := c.cluster.wait(ctx)
		if fault != nil {
			return nil, fault
		}
		v = v.forCall(m, k.route)
		if v.total == 0 {
			return nil, c.noInstance(k.route)
		}
		k.pick.Method = m.name
		if e := c.cluster.connected(&k.pick, v, k.route, tried); e != nil {
			return e, nil
		}
		if fault := c.cluster.hunt(ctx, k.route); fault != nil {
			return nil, fault
		}
	}
}

// connected returns an endpoint of the route that has a connection, or nil. It prefers one that the
// picker returns within a few tries, and otherwise takes the one with the fewest attempts in
// flight.
func (cl *cluster) connected(r *balance.Request, v *view, route *Route, tried []*balance.Endpoint) *endpoint {
	candidates := cl.candidates(route)
	passed := slices.Clone(tried)
	for len(passed) < maxAttempts {
		r.Tried = passed
		e := v.pick(r)
		if e == nil || r.HasTried(e.Endpoint) {
			break
		}
		if e.host.connected() && slices.Contains(candidates, e) {
			r.Tried = nil
			return e
		}
		passed = append(passed, e.Endpoint)
	}
	r.Tried = nil
	var best *endpoint
	var least int64
	for _, e := range candidates {
		if !e.host.connected() {
			continue
		}
		load := e.Active() << 1
		if slices.Contains(tried, e.Endpoint) {
			load += 1 << 32
		}
		if best == nil || load < least || load == least && rand.IntN(2) == 0 {
			best, least = e, load
		}
	}
	return best
}

// candidates returns the endpoints of the route that calls may use. Ejected and silent ones are
// left out if there are others.
func (cl *cluster) candidates(route *Route) []*endpoint {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.candidatesLocked(route)
}

func (cl *cluster) candidatesLocked(route *Route) []*endpoint {
	var all []*endpoint
	if v := cl.view.Load(); route != nil && v != nil {
		all = v.forRoute(route).among
	} else {
		all = slices.Collect(maps.Values(cl.endpoints))
	}
	var fit []*endpoint
	for _, e := range all {
		if e.conduct.standing.Load() == inUse && !e.host.silent.Load() {
			fit = append(fit, e)
		}
	}
	if len(fit) == 0 {
		return all
	}
	return fit
}

// hunt waits for the end of the current hunt, or of a new one if there is none. A nil error means
// that an instance may be connected.
func (cl *cluster) hunt(ctx context.Context, route *Route) *Error {
	if ctx.Err() != nil {
		return cl.notReached(ctx, route)
	}
	cl.mu.Lock()
	if cl.closed {
		cl.mu.Unlock()
		return nil
	}
	h := cl.hunts[route]
	if h == nil {
		h = &hunt{route: route, began: mono.Now(), width: huntFirst, done: make(chan struct{}), left: make(chan struct{}, 1)}
		cl.hunts[route] = h
		cl.client.wg.Go(func() { cl.run(h) })
	}
	h.waiting++
	cl.mu.Unlock()
	select {
	case <-h.done:
		if h.fault == nil {
			return nil
		}
		fault := *h.fault // each call completes its own copy
		return &fault
	case <-ctx.Done():
	}
	cl.mu.Lock()
	if h.waiting--; h.waiting == 0 {
		wake(h.left)
	}
	cl.mu.Unlock()
	return cl.notReached(ctx, route)
}

// run is the goroutine of a hunt.
func (cl *cluster) run(h *hunt) {
	step := time.NewTimer(huntStep)
	defer step.Stop()
	for {
		changed := cl.changes()
		s := survey(cl.candidates(h.route), h.began)
		switch {
		case s.connected > 0 || cl.client.ctx.Err() != nil:
			cl.end(h, nil)
			return
		case s.dialing == 0 && len(s.idle) == 0:
			cl.end(h, s.fault())
			return
		case !h.underWay() && len(s.idle) > 0:
			h.dial(s.idle)
			step.Reset(huntStep)
		}
		select {
		case <-changed:
		case <-step.C:
			h.step = nil
		case <-cl.client.ctx.Done():
		case <-h.left:
			if cl.abandon(h) {
				return
			}
		}
	}
}

// dial begins a step of the hunt.
func (h *hunt) dial(idle []*endpoint) {
	rand.Shuffle(len(idle), func(i, j int) { idle[i], idle[j] = idle[j], idle[i] })
	// Members of the subset come first.
	slices.SortStableFunc(idle, func(a, b *endpoint) int { return cmp.Compare(a.rank, b.rank) })
	h.step = idle[:min(h.width, len(idle))]
	h.width = min(2*h.width, huntMost)
	for _, e := range h.step {
		e.host.try(h.began)
	}
}

// underWay reports whether a connection of the current step is still being made.
func (h *hunt) underWay() bool {
	for _, e := range h.step {
		if s, _, _ := e.host.seen(h.began); s == hostDialing {
			return true
		}
	}
	return false
}

// end ends the hunt.
func (cl *cluster) end(h *hunt, fault *Error) {
	cl.mu.Lock()
	delete(cl.hunts, h.route)
	cl.mu.Unlock()
	h.fault = fault
	close(h.done)
}

// abandon ends the hunt if no call waits, and reports whether it did.
func (cl *cluster) abandon(h *hunt) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if h.waiting > 0 {
		return false
	}
	delete(cl.hunts, h.route)
	close(h.done)
	return true
}

// hostSurvey summarizes the hosts of some endpoints.
type hostSurvey struct {
	total, connected, dialing int
	idle                      []*endpoint // endpoints that can be dialed now
	tried                     mono.Time   // time of the latest failed attempt
	last                      *endpoint   // endpoint of that attempt
	why                       error       // error of that attempt
	obstacle                  obstacle    // the least lasting obstacle of all
}

// survey inspects the hosts of the endpoints for a hunt that began at the given time.
func survey(list []*endpoint, began mono.Time) hostSurvey {
	s := hostSurvey{total: len(list), obstacle: lasting}
	for _, e := range list {
		state, tried, err := e.host.seen(began)
		switch state {
		case hostReady:
			s.connected++
		case hostDialing:
			s.dialing++
		case hostIdle:
			s.idle = append(s.idle, e)
		}
		if err == nil {
			continue
		}
		if s.why == nil || tried > s.tried {
			s.tried, s.last, s.why = tried, e, err
		}
		s.obstacle = min(s.obstacle, e.host.obstacle(err))
	}
	return s
}

// fault returns the error of calls for which no instance can be reached.
func (s *hostSurvey) fault() *Error {
	if s.why == nil {
		e := failure(Unavailable, NotSent, PhaseDial, nil, "none of %d instances can be reached", s.total)
		e.nowhere = true
		return e
	}
	e := failure(dialCode(s.why), NotSent, PhaseDial, s.why, "%v", s.why)
	if s.total > 1 {
		e.Message = "none of " + strconv.Itoa(s.total) + " instances can be reached; the last one: " + e.Message
	}
	e.obstacle, e.nowhere, e.Address = s.obstacle, true, s.last.Instance().Address
	return e
}

// notReached returns the error of a call that timed out or was cancelled before an instance was
// reached.
func (cl *cluster) notReached(ctx context.Context, route *Route) *Error {
	s := survey(cl.candidates(route), 0)
	e := contextFailure(ctx, NotSent, PhaseDial)
	e.Message = "none of " + strconv.Itoa(s.total) + " instances can be reached yet: " + e.Message
	if s.dialing > 0 {
		e.Message += "; " + strconv.Itoa(s.dialing) + " do not answer"
	}
	if s.why != nil {
		e.Message += "; the last one that failed, " + s.last.Instance().Address + ": " + s.why.Error()
	}
	return e
}

// hostSeen is the state of a host as a hunt sees it.
type hostSeen uint8

const (
	hostReady   hostSeen = iota // has a connection
	hostDialing                 // a connection is being made, by this side or by the peer
	hostIdle                    // may be dialed
	hostFailed                  // a recent attempt failed
)

// seen returns the state of the host for a hunt that began at the given time, and the time and
// error of the last failed attempt to connect.
func (h *host) seen(began mono.Time) (s hostSeen, tried mono.Time, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case len(*h.ready.Load()) > 0:
		return hostReady, 0, nil
	case h.dialing || h.dial == nil:
		s = hostDialing
	case h.triable(began):
		s = hostIdle
	default:
		s = hostFailed
	}
	return s, h.tried, h.lastErr
}

// triable reports whether a hunt that began at the given time may dial the host: once per hunt, and
// not right after another attempt.
func (h *host) triable(began mono.Time) bool {
	return !h.closed && (h.tried == 0 || h.tried < began && mono.Since(h.tried) > hurryEvery)
}

// try starts connecting for a hunt that began at the given time, and keeps trying as for a call.
func (h *host) try(began mono.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mayConnectLocked() && len(*h.ready.Load()) == 0 && h.triable(began) {
		h.used = true
		h.connectLocked()
	}
}

func (h *host) obstacle(err error) obstacle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return obstacleOf(err, h.stood)
}

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
)

// A hunt looks for an instance that can be reached, for all calls of a client that may go to the same instances, have found
// none connected, and would wait. It dials two more instances, and twice as many with each step that brings no connection, each
// of them once; the call goes to whichever connects first. One of a thousand instances is found in less than a second if the
// others are silent, and sooner if they refuse. Where instances are well no hunt begins, as the first connection is
// there before its host is late (client_hostpatience.go).
type hunt struct {
	route *Route
	began int64
	width int // instances to dial in the next step
	step  []*endpoint
	done  chan struct{} // closed at the end
	left  chan struct{} // gets a value when no call waits any more
	fault *Error        // nothing can be reached now; nil: look again. Written before done is closed

	waiting int // calls; guarded by the mutex of the cluster
}

const (
	huntFirst = 2
	huntMost  = 256 // in a step
	huntStep  = 25 * time.Millisecond
)

// reach returns an endpoint to which a connection stands, for a call that may go to another one than was picked for it. It waits
// until there is one. tried are the endpoints that are only used if there is no other.
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

// connected returns an endpoint of the route to which a connection stands, or nil: one that the picker chooses if it does so soon,
// and otherwise the one with the fewest attempts in flight.
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

// candidates returns the endpoints of the route that calls may go to, without those that are ejected or silent if there are others.
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

// hunt waits for the end of a hunt, which it begins unless there is one. Without an error an instance may be connected.
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
		h = &hunt{route: route, began: nanotime(), width: huntFirst, done: make(chan struct{}), left: make(chan struct{}, 1)}
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
		fault := *h.fault // each call completes its own
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
	slices.SortStableFunc(idle, func(a, b *endpoint) int { return cmp.Compare(a.rank, b.rank) }) // a subset comes first
	h.step = idle[:min(h.width, len(idle))]
	h.width = min(2*h.width, huntMost)
	for _, e := range h.step {
		e.host.try(h.began)
	}
}

// underWay reports whether the connections of the step that is under way are still being made.
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

// abandon ends the hunt if no call waits, which it reports.
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

// hostSurvey is what is known of the hosts of some endpoints.
type hostSurvey struct {
	total, connected, dialing int
	idle                      []*endpoint // that can be dialed now
	tried                     int64       // nanotime of the latest try that failed
	last                      *endpoint   // where
	why                       error       // and why
	obstacle                  obstacle    // the least lasting one
}

// survey looks at the hosts of the endpoints, for a hunt that began at a time.
func survey(list []*endpoint, began int64) hostSurvey {
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

// fault is the error of calls that no instance can be reached for.
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

// notReached is the error of a call whose time is over before an instance was reached.
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

// What a hunt makes of a host.
type hostSeen uint8

const (
	hostReady   hostSeen = iota // a connection stands
	hostDialing                 // one is being made
	hostIdle                    // one can be made
	hostFailed                  // none could be made lately
)

// seen returns what a hunt that began at a time makes of the host, and when and why a connection was last tried in vain.
func (h *host) seen(began int64) (s hostSeen, tried int64, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case len(*h.ready.Load()) > 0:
		return hostReady, 0, nil
	case h.dialing:
		s = hostDialing
	case h.triable(began):
		s = hostIdle
	default:
		s = hostFailed
	}
	return s, h.tried, h.lastErr
}

// triable reports whether a hunt that began at a time may dial: once, and not right after somebody else did.
func (h *host) triable(began int64) bool {
	return !h.closed && (h.tried == 0 || h.tried < began && nanotime()-h.tried > int64(hurryEvery))
}

// try makes a connection for a hunt that began at a time, and keeps at it as for a call.
func (h *host) try(began int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dialing && len(*h.ready.Load()) == 0 && h.triable(began) {
		h.used = true
		h.connectLocked()
	}
}

func (h *host) obstacle(err error) obstacle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return obstacleOf(err, h.stood)
}

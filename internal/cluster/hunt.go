package cluster

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
)

// hunt searches for a reachable instance on behalf of all waiting calls of a client that may use
// the same instances and found none connected. It dials two more instances, and then twice as many
// with each step that yields no connection, each instance once; the calls go to the first that
// connects. One live instance among a thousand is found in less than a second if the others are
// silent, and sooner if they refuse. Where instances are healthy no hunt begins, as the first
// connection is made before its host counts as late.
type hunt[H Host, R comparable] struct {
	route R
	began mono.Time
	width int // instances to dial in the next step
	step  []*Endpoint[H, R]
	done  chan struct{} // closed at the end
	left  chan struct{} // gets a value when no call waits any more
	// Set before done is closed: why nothing can be reached now, or nil to look again.
	found *Survey[H, R]

	waiting int // number of calls; guarded by the mutex of the cluster
}

const (
	huntFirst = 2
	huntMost  = 256 // limit of a step
	huntStep  = 25 * time.Millisecond

	maxPicks = 5 // of a picker for a connected endpoint, together with the ones already tried
)

// Connected returns an endpoint of the route that has a connection, or nil. It prefers one that the
// picker returns within a few tries, and otherwise takes the one with the fewest attempts in
// flight.
func (cl *Cluster[H, R]) Connected(r *balance.Request, v *View[H, R], route R, tried []*balance.Endpoint) *Endpoint[H, R] {
	candidates := cl.candidates(route)
	passed := slices.Clone(tried)
	for len(passed) < maxPicks {
		r.Tried = passed
		e := v.Pick(r)
		if e == nil || r.HasTried(e.Endpoint) {
			break
		}
		if e.Host.Connected() && slices.Contains(candidates, e) {
			r.Tried = nil
			return e
		}
		passed = append(passed, e.Endpoint)
	}
	r.Tried = nil
	var best *Endpoint[H, R]
	var least int64
	for _, e := range candidates {
		if !e.Host.Connected() {
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
func (cl *Cluster[H, R]) candidates(route R) []*Endpoint[H, R] {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.candidatesLocked(route)
}

func (cl *Cluster[H, R]) candidatesLocked(route R) []*Endpoint[H, R] {
	var all []*Endpoint[H, R]
	var none R
	if v := cl.view.Load(); route != none && v != nil {
		all = v.ForRoute(route).among
	} else {
		all = slices.Collect(maps.Values(cl.endpoints))
	}
	var fit []*Endpoint[H, R]
	for _, e := range all {
		if e.conduct.standing.Load() == InUse && !e.Host.Silent() {
			fit = append(fit, e)
		}
	}
	if len(fit) == 0 {
		return all
	}
	return fit
}

// Hunt waits for the end of the current hunt for a connected endpoint of the route, or of a new one
// if there is none. It returns nil if one may be connected now, or the cluster is closed, and
// otherwise what the hunt has found, or the state of the hosts if ctx is done before.
func (cl *Cluster[H, R]) Hunt(ctx context.Context, route R) *Survey[H, R] {
	if ctx.Err() != nil {
		return cl.cut(route)
	}
	cl.mu.Lock()
	if cl.closed {
		cl.mu.Unlock()
		return nil
	}
	h := cl.hunts[route]
	if h == nil {
		h = &hunt[H, R]{route: route, began: mono.Now(), width: huntFirst, done: make(chan struct{}), left: make(chan struct{}, 1)}
		cl.hunts[route] = h
		cl.wg.Go(func() { cl.run(h) })
	}
	h.waiting++
	cl.mu.Unlock()
	select {
	case <-h.done:
		return h.found
	case <-ctx.Done():
	}
	cl.mu.Lock()
	if h.waiting--; h.waiting == 0 {
		select {
		case h.left <- struct{}{}:
		default:
		}
	}
	cl.mu.Unlock()
	return cl.cut(route)
}

// cut returns the survey of a call that does not wait any longer.
func (cl *Cluster[H, R]) cut(route R) *Survey[H, R] {
	s := survey(cl.candidates(route), 0)
	s.Cut = true
	return s
}

// run is the goroutine of a hunt.
func (cl *Cluster[H, R]) run(h *hunt[H, R]) {
	step := time.NewTimer(huntStep)
	defer step.Stop()
	for {
		changed := cl.Changed()
		s := survey(cl.candidates(h.route), h.began)
		switch {
		case s.connected > 0 || cl.ended():
			cl.end(h, nil)
			return
		case s.Dialing == 0 && len(s.idle) == 0:
			cl.end(h, s)
			return
		case !h.underWay() && len(s.idle) > 0:
			h.dial(s.idle)
			step.Reset(huntStep)
		}
		select {
		case <-changed:
		case <-step.C:
			h.step = nil
		case <-cl.done:
		case <-h.left:
			if cl.abandon(h) {
				return
			}
		}
	}
}

// dial begins a step of the hunt.
func (h *hunt[H, R]) dial(idle []*Endpoint[H, R]) {
	rand.Shuffle(len(idle), func(i, j int) { idle[i], idle[j] = idle[j], idle[i] })
	// Members of the subset come first.
	slices.SortStableFunc(idle, func(a, b *Endpoint[H, R]) int { return cmp.Compare(a.rank, b.rank) })
	h.step = idle[:min(h.width, len(idle))]
	h.width = min(2*h.width, huntMost)
	for _, e := range h.step {
		e.Host.Try(h.began)
	}
}

// underWay reports whether a connection of the current step is still being made.
func (h *hunt[H, R]) underWay() bool {
	for _, e := range h.step {
		if e.Host.Seen(h.began).State == Dialing {
			return true
		}
	}
	return false
}

// end ends the hunt.
func (cl *Cluster[H, R]) end(h *hunt[H, R], found *Survey[H, R]) {
	cl.mu.Lock()
	delete(cl.hunts, h.route)
	cl.mu.Unlock()
	h.found = found
	close(h.done)
}

// abandon ends the hunt if no call waits, and reports whether it did.
func (cl *Cluster[H, R]) abandon(h *hunt[H, R]) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if h.waiting > 0 {
		return false
	}
	delete(cl.hunts, h.route)
	close(h.done)
	return true
}

// Survey summarizes the hosts of some endpoints.
type Survey[H Host, R comparable] struct {
	Total    int             // number of endpoints
	Dialing  int             // number of hosts to which a connection is being made
	Last     *Endpoint[H, R] // endpoint of the latest failed attempt to connect; nil: there was none
	Why      error           // error of that attempt
	Obstacle int             // the least lasting one of all hosts: see Sight
	Cut      bool            // the caller did not wait for the end of the hunt

	connected int
	idle      []*Endpoint[H, R] // endpoints that can be dialed now
	tried     mono.Time         // time of the latest failed attempt
}

// survey inspects the hosts of the endpoints for a hunt that began at the given time.
func survey[H Host, R comparable](list []*Endpoint[H, R], began mono.Time) *Survey[H, R] {
	s := &Survey[H, R]{Total: len(list)}
	for _, e := range list {
		seen := e.Host.Seen(began)
		switch seen.State {
		case Ready:
			s.connected++
		case Dialing:
			s.Dialing++
		case Idle:
			s.idle = append(s.idle, e)
		}
		if seen.Err == nil {
			continue
		}
		if s.Why == nil {
			s.Obstacle = seen.Obstacle
		}
		s.Obstacle = min(s.Obstacle, seen.Obstacle)
		if s.Why == nil || seen.Tried > s.tried {
			s.tried, s.Last, s.Why = seen.Tried, e, seen.Err
		}
	}
	return s
}

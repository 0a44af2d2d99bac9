package anser

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
)

// endpoint is one instance as the client sees it.
type endpoint struct {
	*balance.Endpoint
	host *host
	gone bool // no longer listed by the registry; kept because too many left at once

	cluster *cluster
	conduct endpointHealth
	rank    uint64 // order in which the subset is chosen

	// Guarded by the mutex of the cluster.
	down    bool      // state when the view was last built
	outside bool      // not in the subset
	since   mono.Time // time when it became available again; 0: there from the beginning
}

// cluster holds the instances of one service and the state that the client keeps about them. The
// registry's list is advice: when a list loses more than half of the instances at once, or all of
// them, instances whose connections still work are kept.
type cluster struct {
	client *Client
	log    *slog.Logger
	view   atomic.Pointer[view] // nil before the first list

	partial bool          // whether the balancer may be given a subset
	seed    uint64        // seed of the subset
	trial   probe         // next trial of an ejected instance
	judging atomic.Bool   // more than one instance is known: failures are counted
	alert   atomic.Bool   // something fails: successes are counted too
	kick    chan struct{} // wakes the health goroutine
	// time until which calls wait only briefly for a connection, because an instance was late
	wary   mono.Atomic
	met    atomic.Bool  // an instance was connected at least once
	queued atomic.Int32 // rebuilds requested since the running one began, including that one

	mu        sync.Mutex // guards the fields below
	endpoints map[string]*endpoint
	listed    []registry.Instance                       // the last argument of update
	adjust    func(registry.Instance) registry.Instance // set by the router, or nil
	changed   chan struct{}                             // closed and replaced when the view changes
	updated   time.Time                                 // time of the registry's last list
	stale     bool                                      // the list is a saved one
	trouble   error                                     // why the registry is unreachable, or nil
	closed    bool
	ramp      *time.Timer  // rebuilds the view while instances warm up, or nil
	reason    string       // why the cluster was closed, unless by Client.Close
	saved     time.Time    // time at which the saved list was written
	lists     []listLength // the lengths of recent lists, descending
	since     time.Time    // time when the trouble began

	watched       bool                          // the health goroutine was started
	healthChanged bool                          // the views are out of date
	out           int                           // number of ejected endpoints
	broken        map[*clientMethod][]*endpoint // endpoints whose breakers are not closed
	events        []HealthEvent                 // events not emitted yet
	hunts         map[*Route]*hunt
	healthCounts  [len(healthChangeNames)]int64
	inSubset      int       // endpoints in the subset; 0: no subset
	subsetSize    int       // wanted size of the subset
	loadSeen      mono.Time // time of the last check of its load
	calmSince     mono.Time // time of the last check with enough load for its size
	busy          bool      // the load was high at the last check
}

func newCluster(c *Client) *cluster {
	cl := &cluster{
		client: c, log: c.o.log, endpoints: make(map[string]*endpoint), changed: make(chan struct{}),
		kick: make(chan struct{}, 1), broken: make(map[*clientMethod][]*endpoint), hunts: make(map[*Route]*hunt),
	}
	if cl.partial = c.o.anyPart(); cl.partial {
		cl.seed = c.pool.subsetSeed()
	}
	return cl
}

// update takes a new list from the registry, or a list that was saved to disk at the time saved. It
// reports whether instances are in use that are not in the list.
func (cl *cluster) update(list []registry.Instance, saved time.Time) (holds bool) {
	cl.mu.Lock()
	snapshot := !saved.IsZero()
	if cl.closed || snapshot && !cl.updated.IsZero() {
		cl.mu.Unlock()
		return false
	}
	cl.stale, cl.saved = snapshot, saved
	if !snapshot {
		cl.updated, cl.trouble, cl.since = time.Now(), nil, time.Time{}
	}
	cl.listed = list
	cl.applyLocked(cl.adjustedLocked(list), true)
	for _, e := range cl.endpoints {
		holds = holds || e.gone
	}
	cl.mu.Unlock()
	return holds
}

// applyLocked makes the list the instances that calls go to. fresh means that the list just came
// from the registry.
func (cl *cluster) applyLocked(list []registry.Instance, fresh bool) {
	next := make(map[string]*endpoint, len(list))
	resting := 0 // instances that take no calls
	for _, in := range list {
		if in.State != registry.Up {
			resting++
		}
		if in.Validate() != nil || in.State != registry.Up || next[in.Key()] != nil {
			continue
		}
		next[in.Key()] = cl.endpointLocked(in)
	}
	before, missing := 0, 0
	for key, e := range cl.endpoints {
		if e.gone {
			continue
		}
		before++
		if next[key] == nil && !withdrawn(list, key) {
			missing++
		}
	}
	there := len(next) + resting
	peak := 0
	if fresh {
		peak = cl.peakLocked(there)
	}
	hold := missing > 0 && (2*(before-missing) < before || 2*there < peak)
	for key, e := range cl.endpoints {
		switch {
		case next[key] == e:
		case next[key] != nil: // the instance moved to another address
			cl.retireLocked(e)
		case (hold || e.gone) && !withdrawn(list, key) && !e.host.down():
			e.gone = true
			next[key] = e
		default:
			cl.retireLocked(e)
		}
	}
	if hold && before > 1 {
		cl.log.Warn("the registry's list shrank by more than half at once: instances are kept until their connections fail",
			"before", before, "missing", missing)
	}
	cl.endpoints = next
	cl.rebuildLocked()
}

// adjustedLocked returns the list after the router's changes.
func (cl *cluster) adjustedLocked(list []registry.Instance) []registry.Instance {
	if cl.adjust == nil {
		return list
	}
	adjusted := make([]registry.Instance, len(list))
	for i := range list {
		in := list[i]
		to := cl.adjust(in.Clone())
		in.Weight, in.State = to.Weight, to.State
		adjusted[i] = in
	}
	return adjusted
}

// readjust replaces the router's function and applies it, unless there is no list yet.
func (cl *cluster) readjust(f func(registry.Instance) registry.Instance) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.adjust = f
	if !cl.closed && cl.listed != nil {
		cl.applyLocked(cl.adjustedLocked(cl.listed), false)
	}
}

// atOnce is the time within which a list that loses more than half of its instances counts as
// losing them at once. A registry that is emptied key by key, or whose leases run out one after the
// other, shrinks in small steps.
const atOnce = 10 * time.Second

// listLength is the length of a list at a time.
type listLength struct {
	n  int
	at mono.Time
}

// peakLocked returns the greatest length of the list within atOnce, and records a list of n
// instances.
func (cl *cluster) peakLocked(n int) (peak int) {
	now := mono.Now()
	cl.lists = slices.DeleteFunc(cl.lists, func(l listLength) bool { return l.n <= n || now.Sub(l.at) > atOnce })
	for _, l := range cl.lists {
		peak = max(peak, l.n)
	}
	cl.lists = append(cl.lists, listLength{n, now})
	return peak
}

// retireLocked releases the endpoint's host after the last call in flight there has ended.
func (cl *cluster) retireLocked(e *endpoint) {
	cl.forgetRemovedLocked(e)
	cl.client.wg.Go(func() {
		tick := time.NewTicker(retireEvery)
		defer tick.Stop()
		for e.Active() > 0 && cl.client.ctx.Err() == nil {
			select {
			case <-tick.C:
			case <-cl.client.ctx.Done():
			}
		}
		e.host.unwatch(cl)
		cl.client.pool.release(e.host)
	})
}

const retireEvery = 20 * time.Millisecond

// withdrawn reports whether the list itself says that the instance takes no calls.
func withdrawn(list []registry.Instance, key string) bool {
	for i := range list {
		if list[i].Key() == key {
			return list[i].State != registry.Up
		}
	}
	return false
}

// endpointLocked returns the endpoint of the instance, a new one if the instance is new or has
// moved.
func (cl *cluster) endpointLocked(in registry.Instance) *endpoint {
	if e := cl.endpoints[in.Key()]; e != nil && e.Instance().Address == in.Address {
		if !e.Instance().Equal(in) {
			e.SetInstance(in)
		}
		e.gone = false
		e.host.redialNow() // it may have just come back
		return e
	}
	h := cl.client.acquire(in.Address)
	h.watch(cl)
	if h.handlers != nil {
		h.keepConnected()
	}
	e := &endpoint{Endpoint: balance.NewEndpoint(in), host: h, cluster: cl}
	if cl.partial {
		e.rank = rankFor(cl.seed, in.Key())
	}
	if len(cl.endpoints) > 0 {
		e.since = mono.Now()
	}
	return e
}

// rebuild builds a new view after the state of a host changed. While one goroutine rebuilds, other
// callers only leave it a note: of a thousand instances, hundreds may fail at once.
func (cl *cluster) rebuild() {
	if cl.queued.Add(1) > 1 {
		return
	}
	for {
		n := cl.queued.Load()
		cl.rebuildNow()
		if cl.queued.CompareAndSwap(n, 0) {
			return
		}
	}
}

func (cl *cluster) rebuildNow() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.closed {
		return
	}
	for key, e := range cl.endpoints {
		if e.gone && e.host.down() {
			delete(cl.endpoints, key)
			cl.retireLocked(e)
		}
	}
	cl.rebuildLocked()
}

// rebuildLocked leaves out instances that are unreachable, silent or ejected, unless all of them
// are.
func (cl *cluster) rebuildLocked() {
	cl.noteReachableLocked(mono.Now())
	all := make([]*endpoint, 0, len(cl.endpoints))
	up := make([]*endpoint, 0, len(cl.endpoints))
	for _, e := range cl.endpoints {
		all = append(all, e)
		if !e.down && e.conduct.standing.Load() == inUse && !cl.silences(e) {
			up = append(up, e)
		}
	}
	if len(up) == 0 {
		up = slices.DeleteFunc(slices.Clone(all), func(e *endpoint) bool { return e.down })
	}
	if len(up) == 0 {
		up = all
		cl.client.source.refresh()
	}
	chosen := cl.chooseLocked(up)
	v := cl.viewOf(chosen, up, cl.view.Load())
	if cl.out > 0 {
		v.trials = []*probe{&cl.trial}
	}
	cl.view.Store(v)
	for m, broken := range cl.broken {
		without := func(list []*endpoint) []*endpoint {
			return slices.DeleteFunc(slices.Clone(list), func(e *endpoint) bool { return slices.Contains(broken, e) })
		}
		rest := without(chosen)
		if len(rest) == 0 {
			m.view.Store(nil)
			continue
		}
		around := cl.viewOf(rest, without(up), m.view.Load())
		around.trials = append([]*probe{&m.trial}, v.trials...)
		m.view.Store(around)
	}
	cl.healthChanged = false
	close(cl.changed)
	cl.changed = make(chan struct{})
}

// silences reports whether the endpoint gets no calls because it is silent. There is no limit to
// the number of such endpoints: unlike ejection, this does not compare instances with each other.
func (cl *cluster) silences(e *endpoint) bool {
	return !cl.client.o.ejection.Off && e.host.silent.Load()
}

// The initial weight of an instance, in percent, and the number of steps in which it grows.
const (
	firstWarmth = 10
	rampSteps   = 20
)

// wait returns the view as soon as there is one.
func (cl *cluster) wait(ctx context.Context) (*view, *Error) {
	for {
		cl.mu.Lock()
		changed, trouble, closed, reason := cl.changed, cl.trouble, cl.closed, cl.reason
		v := cl.view.Load()
		cl.mu.Unlock()
		if closed && reason != "" {
			return nil, failure(Unavailable, NotSent, PhaseResolve, nil, "%s", reason)
		}
		if closed {
			return nil, failure(Canceled, NotSent, PhaseResolve, nil, "the client is closed")
		}
		if v != nil {
			return v, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			e := contextFailure(ctx, NotSent, PhaseResolve)
			switch {
			case trouble == nil:
				e.Message = "no list of instances yet: " + e.Message
			case e.Code == Canceled:
				e.Message += ", before the registry could be reached: " + trouble.Error()
			default:
				e.Code = Unavailable
				e.Message = "the registry cannot be reached, and there is no snapshot of its last list: " + trouble.Error()
			}
			return nil, e
		}
	}
}

// has reports whether e is still an instance, whether up or down.
func (cl *cluster) has(e *endpoint) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.endpoints[e.Instance().Key()] == e
}

// changes returns a channel that is closed when the view changes.
func (cl *cluster) changes() <-chan struct{} {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.changed
}

func (cl *cluster) report(err error) {
	cl.mu.Lock()
	first := cl.trouble == nil
	cl.trouble = err
	if first {
		cl.since = time.Now()
	}
	cl.mu.Unlock()
	if first {
		cl.log.Warn("the registry cannot be reached: calls go on with the last known instances", "err", err)
	}
}

// redialNow reconnects at once to the hosts that wait for their next attempt.
func (cl *cluster) redialNow() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, e := range cl.endpoints {
		e.host.redialNow()
	}
}

func (cl *cluster) status() ClientStatus {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	s := ClientStatus{
		Target: cl.client.target, Updated: cl.updated, Snapshot: cl.stale, Trouble: cl.trouble, Since: cl.since,
		Subset: cl.inSubset, Health: make(map[HealthChange]int64),
	}
	if cl.stale {
		s.Saved = cl.saved
	}
	for change, n := range cl.healthCounts {
		if n > 0 {
			s.Health[HealthChange(change)] = n
		}
	}
	now := mono.Now()
	for _, e := range cl.endpoints {
		missing, _, _ := e.host.missing()
		in := InstanceStatus{
			Instance: e.Instance().Clone(), Connected: e.host.connected(), Down: missing,
			Held: e.gone, Active: e.Active(), Latency: e.Latency(),
			Outside: e.outside, Breakers: e.breakersLocked(now),
		}
		if j := &e.conduct.ejection; e.conduct.standing.Load() != inUse {
			in.Ejected, in.Ejections = j.why, j.times
			if !j.silent && j.until > now {
				in.EjectedUntil = time.Now().Add(j.until.Sub(now))
			}
		}
		s.Instances = append(s.Instances, in)
	}
	slices.SortFunc(s.Instances, func(a, b InstanceStatus) int { return strings.Compare(a.Key(), b.Key()) })
	return s
}

// endWith makes all further calls fail with the reason.
func (cl *cluster) endWith(reason string) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.closed {
		return
	}
	cl.closed, cl.reason = true, reason
	cl.view.Store(nil)
	close(cl.changed)
}

func (cl *cluster) close() {
	cl.mu.Lock()
	if cl.closed {
		cl.mu.Unlock()
		return
	}
	cl.closed = true
	if cl.ramp != nil {
		cl.ramp.Stop()
	}
	endpoints := cl.endpoints
	cl.endpoints = nil
	cl.view.Store(nil) // connections that other clients share still work
	close(cl.changed)
	cl.mu.Unlock()
	for _, e := range endpoints {
		e.host.unwatch(cl)
		cl.client.pool.release(e.host)
	}
}

// lonely reports whether there is at most one instance, so that calls have nowhere else to go.
func (cl *cluster) lonely() bool {
	v := cl.view.Load()
	return v == nil || v.total < 2
}

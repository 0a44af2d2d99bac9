package cluster

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/internal/loglimit"
	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/registry"
)

// Cluster holds the instances of one service and the state that a client keeps about them. The
// registry's list is advice: when a list loses more than half of the instances at once, or all of
// them, instances whose connections still work are kept.
type Cluster[H Host, R comparable] struct {
	o    Options[H, R]
	view atomic.Pointer[View[H, R]] // nil before the first list

	partial bool          // whether the balancer may be given a subset
	trial   probe[H, R]   // next trial of an ejected instance
	judging atomic.Bool   // more than one instance is known: failures are counted
	alert   atomic.Bool   // something fails: successes are counted too
	kick    chan struct{} // wakes the health goroutine
	// time until which calls wait only briefly for a connection, because an instance was late
	wary   mono.Atomic
	met    atomic.Bool     // an instance was connected at least once
	queued atomic.Int32    // rebuilds requested since the running one began, including that one
	others Method[H, R]    // under which methods are counted that are not kept
	shrank loglimit.Seldom // lists that made instances be held

	done chan struct{}  // closed with the cluster
	wg   sync.WaitGroup // goroutines, which end with done

	mu        sync.Mutex // guards the fields below
	endpoints map[string]*Endpoint[H, R]
	listed    []registry.Instance                       // the last argument of Update
	adjust    func(registry.Instance) registry.Instance // set by the router, or nil
	changed   chan struct{}                             // closed and replaced when the view changes
	updated   time.Time                                 // time of the registry's last list
	stale     bool                                      // the list is a saved one
	trouble   error                                     // why the registry is unreachable, or nil
	closed    bool
	ramp      *time.Timer  // rebuilds the view while instances warm up, or nil
	reason    string       // why the cluster was closed, unless by Close
	saved     time.Time    // time at which the saved list was written
	lists     []listLength // the lengths of recent lists, descending
	since     time.Time    // time when the trouble began

	watched       bool                                // the health goroutine was started
	healthChanged bool                                // the views are out of date
	out           int                                 // number of ejected endpoints
	broken        map[*Method[H, R]][]*Endpoint[H, R] // endpoints whose breakers are not closed
	events        []Event                             // events not emitted yet
	hunts         map[R]*hunt[H, R]                   // that have not ended, by route
	changes       [Changes]int64                      // number of events of each kind
	inSubset      int                                 // endpoints in the subset; 0: no subset
	subsetSize    int                                 // wanted size of the subset
	loadSeen      mono.Time                           // time of the last check of its load
	calmSince     mono.Time                           // time of the last check with enough load for its size
	busy          bool                                // the load was high at the last check
}

// New returns a cluster without instances. Close releases its hosts.
func New[H Host, R comparable](o Options[H, R]) *Cluster[H, R] {
	return &Cluster[H, R]{
		o: o, partial: o.Subset.From > 0, endpoints: make(map[string]*Endpoint[H, R]), changed: make(chan struct{}),
		kick: make(chan struct{}, 1), done: make(chan struct{}), broken: make(map[*Method[H, R]][]*Endpoint[H, R]),
		hunts: make(map[R]*hunt[H, R]), others: Method[H, R]{Name: "(other methods)", Index: MaxMethods},
	}
}

// Update takes a new list from the registry, or a list that was saved to disk at the time saved. It
// reports whether instances are in use that are not in the list.
func (cl *Cluster[H, R]) Update(list []registry.Instance, saved time.Time) (holds bool) {
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
func (cl *Cluster[H, R]) applyLocked(list []registry.Instance, fresh bool) {
	next := make(map[string]*Endpoint[H, R], len(list))
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
	newly := 0 // instances that are held from now on
	for key, e := range cl.endpoints {
		switch {
		case next[key] == e:
		case next[key] != nil: // the instance moved to another address
			cl.retireLocked(e)
		case (hold || e.gone) && !withdrawn(list, key) && !e.Host.Reach().Down():
			if !e.gone {
				newly++
			}
			e.gone = true
			next[key] = e
		default:
			cl.retireLocked(e)
		}
	}
	held := 0
	for _, e := range next {
		if e.gone {
			held++
		}
	}
	if before > 1 && newly > 0 {
		if times := cl.shrank.Note(mono.Now()); times > 0 {
			cl.o.Log.Warn("the registry's list shrank by more than half at once: instances are kept until their connections fail",
				"before", before, "missing", missing, "held", held, "times", times)
		}
	}
	cl.endpoints = next
	cl.rebuildLocked()
}

// adjustedLocked returns the list after the router's changes.
func (cl *Cluster[H, R]) adjustedLocked(list []registry.Instance) []registry.Instance {
	if cl.adjust == nil {
		return list
	}
	adjusted := make([]registry.Instance, len(list))
	for i := range list {
		in := list[i]
		to := cl.adjust(in.Clone())
		in.Weight, in.State, in.Tags = to.Weight, to.State, to.Tags
		adjusted[i] = in
	}
	return adjusted
}

// Adjust replaces the function that is applied to listed instances, and applies it, unless there is
// no list yet. It may change weight, state and tags; nil changes
// nothing.
func (cl *Cluster[H, R]) Adjust(f func(registry.Instance) registry.Instance) {
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
func (cl *Cluster[H, R]) peakLocked(n int) (peak int) {
	now := mono.Now()
	cl.lists = slices.DeleteFunc(cl.lists, func(l listLength) bool { return l.n <= n || now.Sub(l.at) > atOnce })
	for _, l := range cl.lists {
		peak = max(peak, l.n)
	}
	cl.lists = append(cl.lists, listLength{n, now})
	return peak
}

// retireLocked releases the endpoint's host after the last call in flight there has ended.
func (cl *Cluster[H, R]) retireLocked(e *Endpoint[H, R]) {
	cl.forgetRemovedLocked(e)
	cl.wg.Go(func() {
		tick := time.NewTicker(retireEvery)
		defer tick.Stop()
		for e.Active() > 0 && !cl.ended() {
			select {
			case <-tick.C:
			case <-cl.done:
			}
		}
		cl.o.Release(e.Host)
	})
}

// ended reports whether the cluster was closed.
func (cl *Cluster[H, R]) ended() bool {
	select {
	case <-cl.done:
		return true
	default:
		return false
	}
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
func (cl *Cluster[H, R]) endpointLocked(in registry.Instance) *Endpoint[H, R] {
	if e := cl.endpoints[in.Key()]; e != nil && e.Instance().Address == in.Address {
		if !e.Instance().Equal(in) {
			e.SetInstance(in)
		}
		e.gone = false
		e.Host.RedialNow() // it may have just come back
		return e
	}
	e := &Endpoint[H, R]{Endpoint: balance.NewEndpoint(in), Host: cl.o.Acquire(in.Address), cluster: cl}
	if cl.partial {
		e.rank = rankFor(cl.o.Subset.Seed, in.Key())
	}
	if len(cl.endpoints) > 0 {
		e.since = mono.Now()
	}
	return e
}

// Rebuild builds a new view after the state of a host changed. While one goroutine rebuilds, other
// callers only leave it a note: of a thousand instances, hundreds may fail at once.
func (cl *Cluster[H, R]) Rebuild() {
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

func (cl *Cluster[H, R]) rebuildNow() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.closed {
		return
	}
	for key, e := range cl.endpoints {
		if e.gone && e.Host.Reach().Down() {
			delete(cl.endpoints, key)
			cl.retireLocked(e)
		}
	}
	cl.rebuildLocked()
}

// rebuildLocked leaves out instances that are unreachable, silent or ejected, unless all of them
// are.
func (cl *Cluster[H, R]) rebuildLocked() {
	cl.noteReachableLocked(mono.Now())
	all := make([]*Endpoint[H, R], 0, len(cl.endpoints))
	up := make([]*Endpoint[H, R], 0, len(cl.endpoints))
	for _, e := range cl.endpoints {
		all = append(all, e)
		if !e.down && e.conduct.standing.Load() == InUse && !cl.silences(e) {
			up = append(up, e)
		}
	}
	if len(up) == 0 {
		up = slices.DeleteFunc(slices.Clone(all), func(e *Endpoint[H, R]) bool { return e.down })
	}
	if len(up) == 0 {
		up = all
		cl.o.Refresh()
	}
	chosen := cl.chooseLocked(up)
	v := cl.viewOf(chosen, up, cl.view.Load())
	if cl.out > 0 {
		v.trials = []*probe[H, R]{&cl.trial}
	}
	cl.view.Store(v)
	for m, broken := range cl.broken {
		without := func(list []*Endpoint[H, R]) []*Endpoint[H, R] {
			return slices.DeleteFunc(slices.Clone(list), func(e *Endpoint[H, R]) bool { return slices.Contains(broken, e) })
		}
		rest := without(chosen)
		if len(rest) == 0 {
			m.view.Store(nil)
			continue
		}
		around := cl.viewOf(rest, without(up), m.view.Load())
		around.trials = append([]*probe[H, R]{&m.trial}, v.trials...)
		m.view.Store(around)
	}
	cl.healthChanged = false
	close(cl.changed)
	cl.changed = make(chan struct{})
}

// silences reports whether the endpoint gets no calls because it is silent. There is no limit to
// the number of such endpoints: unlike ejection, this does not compare instances with each other.
func (cl *Cluster[H, R]) silences(e *Endpoint[H, R]) bool {
	return !cl.o.Ejection.Off && e.Host.Silent()
}

// View returns the current view, or nil if there is none: before the first list, and at the end.
func (cl *Cluster[H, R]) View() *View[H, R] { return cl.view.Load() }

// Absence says why there is no view.
type Absence struct {
	Closed  bool   // the cluster was closed
	Reason  string // if so, the argument of EndWith; otherwise empty
	Trouble error  // why the registry cannot be reached, or nil
}

// Wait returns the view as soon as there is one. Without one it returns why, once the cluster is
// closed or ctx is done.
func (cl *Cluster[H, R]) Wait(ctx context.Context) (*View[H, R], *Absence) {
	for {
		cl.mu.Lock()
		changed, closed, reason, trouble := cl.changed, cl.closed, cl.reason, cl.trouble
		v := cl.view.Load()
		cl.mu.Unlock()
		if closed {
			return nil, &Absence{Closed: true, Reason: reason}
		}
		if v != nil {
			return v, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, &Absence{Trouble: trouble}
		}
	}
}

// Has reports whether e is still an instance, whether up or down.
func (cl *Cluster[H, R]) Has(e *Endpoint[H, R]) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.endpoints[e.Instance().Key()] == e
}

// Changed returns a channel that is closed when the view changes.
func (cl *Cluster[H, R]) Changed() <-chan struct{} {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.changed
}

// Report says that the registry cannot be reached, until the next Update.
func (cl *Cluster[H, R]) Report(err error) {
	cl.mu.Lock()
	first := cl.trouble == nil
	cl.trouble = err
	if first {
		cl.since = time.Now()
	}
	cl.mu.Unlock()
	if first {
		cl.o.Log.Warn("the registry cannot be reached: calls go on with the last known instances", "err", err)
	}
}

// RedialNow reconnects at once to the hosts that wait for their next attempt.
func (cl *Cluster[H, R]) RedialNow() {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, e := range cl.endpoints {
		e.Host.RedialNow()
	}
}

// Find returns the endpoint of the instance with a key, or nil.
func (cl *Cluster[H, R]) Find(key string) *Endpoint[H, R] {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.endpoints[key]
}

// Fix makes an instance the one that all calls go to, whatever the state of its host. It is neither
// released nor found by its key.
func (cl *Cluster[H, R]) Fix(in registry.Instance, h H) {
	e := &Endpoint[H, R]{Endpoint: balance.NewEndpoint(in), Host: h, cluster: cl}
	cl.view.Store(&View[H, R]{only: e, Usable: 1, Total: 1})
}

// Met reports whether an instance was connected at some time.
func (cl *Cluster[H, R]) Met() bool { return cl.met.Load() }

// Wary reports whether calls should wait only briefly for a connection, as an instance was late.
func (cl *Cluster[H, R]) Wary(now mono.Time) bool { return cl.wary.Load() > now }

// waryFor is how long a cluster is wary after an instance was late.
const waryFor = 10 * time.Second

// EndWith makes all further calls fail with the reason. It releases no host.
func (cl *Cluster[H, R]) EndWith(reason string) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if !cl.closed {
		cl.reason = reason
		cl.closeLocked()
	}
}

// Close releases all hosts. It does not wait for the goroutines of the cluster: see Join.
func (cl *Cluster[H, R]) Close() {
	cl.mu.Lock()
	if cl.closed {
		cl.mu.Unlock()
		return
	}
	cl.closeLocked()
	endpoints := cl.endpoints
	cl.endpoints = nil
	cl.mu.Unlock()
	for _, e := range endpoints {
		cl.o.Release(e.Host)
	}
}

// closeLocked ends the goroutines and wakes the calls that wait.
func (cl *Cluster[H, R]) closeLocked() {
	cl.closed = true
	close(cl.done)
	if cl.ramp != nil {
		cl.ramp.Stop()
	}
	cl.view.Store(nil) // connections that other clients share still work
	close(cl.changed)
}

// Join waits until the goroutines of a closed cluster have ended.
func (cl *Cluster[H, R]) Join() { cl.wg.Wait() }

// lonely reports whether there is at most one instance, so that calls have nowhere else to go.
func (cl *Cluster[H, R]) lonely() bool {
	v := cl.view.Load()
	return v == nil || v.Total < 2
}

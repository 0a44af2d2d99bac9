package anser

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
	"github.com/anser-rpc/anser/internal/upkeep"
)

const (
	maxConns       = 8               // connections to one address
	growAt         = 0.8             // of the server's max_calls on every connection
	growOwed       = 1000            // CANCELs that wait for their turn
	growWaiting    = 768             // KiB that wait to be written; a batch of a thousand callers does not saturate a connection
	firstBackoff   = time.Second     // gRPC's connection backoff
	backoffFactor  = 1.6             //
	maxBackoff     = 2 * time.Minute //
	lastedAtLeast  = 5 * time.Second // a connection that lived this long resets the backoff
	redialAtOnce   = 20 * time.Millisecond
	hurryEvery     = 200 * time.Millisecond
	extraIdleAfter = time.Minute // connections beyond the first ones are closed after this idle time
)

// hostOptions are the options by which the connections of different clients to one address differ.
type hostOptions struct {
	keepaliveOptions
	network          string
	address          string
	tls              *tls.Config
	maxMessage       int
	maxExpansion     int
	connectTimeout   time.Duration
	handshakeTimeout time.Duration
	idleTimeout      time.Duration // 0: none
	checksums        bool
	streamsApart     bool       // a stream has a connection of its own
	wrapper          *Transport // whose Wrap connections need, or nil
	streamWindow     int
	windowsGrow      bool
	connWindow       int
	handlers         callHandler // of calls from the other side, or nil
	observers        *observers
	credentials      *credentials // nil: none are shown
	inTheClear       bool         // credentials may be sent unprotected
	secure           bool         // what dial returns is protected, as far as the server
	log              *slog.Logger // for the use of credentials; nil without any
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// host is one address with its connections. It is shared by the clients of a pool.
type host struct {
	pool *pool
	hostOptions
	dial    dialFunc
	session uint64 // with each server at the address, if there are handlers; else 0

	refs int // guarded by pool.mu

	ready atomic.Pointer[[]*callerHalf] // connections that take calls; replaced, never changed
	want  atomic.Int32                  // connections to have under load

	judged atomic.Bool // some client can do without this host, and wants to know when it is silent
	silent atomic.Bool // it does not answer pings
	spare  atomic.Bool // some client left it out of its subset
	upkeep upkeep.Task // runs tend

	mu        sync.Mutex // guards the fields below
	dialing   bool
	closed    bool
	used      bool      // some call wanted the host: keep it connected
	failures  int       // since a connection last lasted
	growAfter mono.Time // time before which no further connection is tried
	lastErr   error
	tried     mono.Time     // time of the last try
	late      bool          // making a connection takes longer than usual, and no other one is ready
	stood     bool          // there was a connection at some time
	usual     time.Duration // of making a connection; 0: not known
	early     *earlyCall    // goes out with the preface of the connection that is being made, or nil
	greeted   bool          // the preface of that connection was made: it takes no call any more
	waits     bool          // no call goes out with a preface, as the server demands checksums
	patience  *time.Timer   // notes that the connection which is being made is late
	retry     *time.Timer
	changed   chan struct{}            // closed and replaced at every change of state
	watchers  map[hostWatcher]int      // how many of its instances are at this address
	all       map[*clientConn]struct{} // including draining ones
	ctx       context.Context
	cancel    context.CancelFunc
	wg        sync.WaitGroup
}

// newHost returns a host whose connections dial makes. With a nil dial the other side makes them,
// and enlistLocked takes them into use.
func newHost(p *pool, o hostOptions, dial dialFunc) *host {
	h := &host{
		pool: p, hostOptions: o, dial: dial, changed: make(chan struct{}),
		watchers: make(map[hostWatcher]int), all: make(map[*clientConn]struct{}),
	}
	if o.handlers != nil {
		h.session = newSessionID()
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.ready.Store(new([]*callerHalf))
	return h
}

// pickConn returns a connection for one attempt, or nil if none is ready. It makes more
// connections under load. Calls are spread by slot, a random number of the call: comparing the
// loads of the connections would fetch cache lines that other processors are writing.
func (h *host) pickConn(slot uint32) *callerHalf {
	list := *h.ready.Load()
	if len(list) == 0 {
		return nil
	}
	c := list[slot%uint32(len(list))]
	if len(list) < h.wantConns() && c.busy.Load() > 0 {
		h.grow(list)
	}
	if c.saturated() {
		h.grow(list)
		c = slices.MinFunc(list, func(a, b *callerHalf) int { return int(a.load() - b.load()) })
	}
	return c
}

// connOf returns a connection to the life of the server, or nil.
func (h *host) connOf(life uint64) *callerHalf {
	for _, c := range *h.ready.Load() {
		if c.peer.Life == life {
			return c
		}
	}
	return nil
}

func (c *callerHalf) saturated() bool {
	owed := c.owed.Load()
	return c.waiting.Load() >= growWaiting || c.lending.Load() >= growWaiting || owed >= growOwed || float64(c.busy.Load()+owed) >= growAt*float64(c.peer.MaxCalls)
}

func (h *host) wantConns() int { return int(h.want.Load()) }

// wantAtLeast raises the number of connections to have under load. pool.mu is held.
func (h *host) wantAtLeast(n int) {
	if int32(n) > h.want.Load() {
		h.want.Store(int32(n))
	}
}

// grow makes one more connection in the background, if there may be more than there are in list.
func (h *host) grow(list []*callerHalf) {
	if !h.mayGrow(list) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	list = *h.ready.Load() // since it was loaded another caller may have made the connection
	if len(list) == 0 || !h.mayGrow(list) || !h.mayConnectLocked() || mono.Now() < h.growAfter {
		return
	}
	h.connectLocked()
}

func (h *host) mayGrow(list []*callerHalf) bool {
	return len(list) < h.wantConns() || len(list) < maxConns && allSaturated(list)
}

func allSaturated(list []*callerHalf) bool {
	for _, c := range list {
		if !c.saturated() && !c.streamsFull() {
			return false
		}
	}
	return true
}

// waitConn waits while a connection is being made, until ctx ends and up to the time until, unless
// that is 0. It starts making one unless the last failure was so recent that the backoff still
// runs. A patient caller also waits for a late connection. early is the caller's call if it may go
// out with the preface of the connection, or nil. With makes, the caller makes the connection
// itself, which takes up to ConnectTimeout.
func (h *host) waitConn(ctx context.Context, until mono.Time, patient, makes bool, early *earlyCall) (*callerHalf, *Error) {
	for {
		h.mu.Lock()
		h.used = true
		if conn, ok := h.connLocked(early); ok {
			h.mu.Unlock()
			return conn, nil
		}
		err := h.uselessLocked()
		switch {
		case early != nil && early.lost != nil:
			err = unreached(early.lost, h.stood)
		case err == nil && h.late && !patient:
			err = h.lateLocked()
		}
		if err != nil {
			h.leaveEarlyLocked(early)
			h.mu.Unlock()
			return nil, err
		}
		may := h.mayConnectLocked()
		if may && makes {
			h.beginLocked()
			h.wg.Add(1)
			h.proposeLocked(early)
			h.mu.Unlock()
			h.makeForCaller()
			makes = false // there may not be time for another one
			continue
		}
		if may {
			h.connectLocked()
		}
		h.proposeLocked(early)
		changed, lastErr := h.changed, h.lastErr
		h.mu.Unlock()
		waiting, cancel := boundBy(ctx, until)
		select {
		case <-changed:
			cancel()
		case <-waiting.Done():
			defer cancel()
			if conn := h.leaveEarly(early); conn != nil {
				return conn, nil
			}
			e := h.notYet(waiting)
			if lastErr != nil {
				e.Message += ", and the last try failed: " + lastErr.Error()
			}
			return nil, e
		}
	}
}

// keepConnected has a connection made now, and again when it is lost, whether there are calls or
// not.
func (h *host) keepConnected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = true
	if h.mayConnectLocked() && h.retry == nil && len(*h.ready.Load()) == 0 {
		h.connectLocked()
	}
}

// uselessLocked says why waiting for a connection makes no sense, or nil.
func (h *host) uselessLocked() *Error {
	switch {
	case h.closed:
		// The client is closed, or the instance was removed from the list and the call goes
		// elsewhere.
		return failure(Unavailable, NotSent, PhaseDial, nil, "the address %s is not used any more", h.address)
	case h.failures > 0 && h.retry != nil:
		e := unreached(h.lastErr, h.stood)
		if mono.Since(h.tried) > hurryEvery {
			e.obstacle = passing // it may have gone away since: the call has one more try made
		}
		return e
	}
	return nil
}

// notYet is the error of a call whose context ended while it waited for a connection.
func (h *host) notYet(ctx context.Context) *Error {
	e := contextFailure(ctx, NotSent, PhaseDial)
	e.Message = fmt.Sprintf("no connection to %s yet: %s", h.address, e.Message)
	return e
}

// mayConnectLocked reports whether a connection can be made that is not being made yet.
func (h *host) mayConnectLocked() bool { return h.dial != nil && !h.closed && !h.dialing }

// connectLocked starts to make a connection; its end is a change of state.
func (h *host) connectLocked() {
	h.beginLocked()
	h.wg.Go(func() {
		c, err := h.connect(false)
		h.enter(c, err, false)
	})
}

// beginLocked notes that a connection is being made.
func (h *host) beginLocked() {
	h.dialing, h.tried = true, mono.Now()
	if h.retry != nil {
		h.retry.Stop()
		h.retry = nil
	}
	h.awaitLocked()
	// The maintenance of the connection sets its timer for this time. Setting it now wakes no
	// thread: later, one would be waiting for the network until a later time.
	h.upkeep.By(h.tried.Add(upkeep.Interval))
}

// makesInTime reports whether making a connection ends with [ConnectTimeout]. The functions of
// credentials, wrappers, observers and TLS have no context that would end them.
func (h *host) makesInTime() bool {
	t := h.tls
	return h.credentials == nil && h.wrapper == nil && !h.observers.learnConns() &&
		(t == nil || t.VerifyPeerCertificate == nil && t.VerifyConnection == nil && t.GetClientCertificate == nil)
}

// makeForCaller makes a connection on the goroutine of a caller, which is about to read its reply
// from it. So the connection's own goroutine is started when it is needed.
func (h *host) makeForCaller() {
	defer h.wg.Done() // the caller has added it
	returned := false
	defer func() {
		if !returned { // the caller may recover the panic, and call again
			h.enter(nil, errDialPanicked, false)
		}
	}()
	c, err := h.connect(false)
	returned = true
	if err == nil {
		c.role.who.Store(nobodyReads)
		c.role.single = fewSingles
	}
	h.enter(c, err, false)
}

var errDialPanicked = errors.New("the function of anser.Dialer has panicked, or ended its goroutine")

// instance is the address as instances have it.
func (h *host) instance() string {
	if h.network != "tcp" {
		return h.network + "://" + h.address
	}
	return h.address
}

// drained takes a connection out of use whose server is going away, and looks for its successor.
func (h *host) drained(c *callerHalf) { h.remove(c, nil) }

// lost notes the end of a connection.
func (h *host) lost(c *clientConn, err error) {
	h.mu.Lock()
	delete(h.all, c)
	h.mu.Unlock()
	h.pool.upkeep.Remove(&c.upkeep)
	h.remove(&c.callerHalf, err)
}

func (h *host) remove(c *callerHalf, err error) {
	h.mu.Lock()
	list := slices.DeleteFunc(slices.Clone(*h.ready.Load()), func(o *callerHalf) bool { return o == c })
	if len(list) == len(*h.ready.Load()) {
		h.mu.Unlock()
		return
	}
	h.ready.Store(&list)
	switch {
	case len(list) > 0 || h.closed:
	case err == nil && c.rests() && h.handlers == nil: // a client that serves calls must stay reachable
		h.used = false // the next call makes a connection
	default:
		if mono.Since(c.born) > lastedAtLeast {
			h.failures = 0
		}
		h.failures++ // the host counts as down until the next connection is made
		if err == nil {
			err = fmt.Errorf("the server at %s is draining", h.address)
		} else {
			// The text alone: what ended a connection is no verdict on the next one. A server that
			// closes it as unauthenticated may accept the credential again, with other groups.
			err = fmt.Errorf("the connection was lost: %v", err)
		}
		h.lastErr = err
		if h.mayConnectLocked() {
			h.retryLocked(h.backoffLocked())
		}
	}
	tell := h.changedLocked()
	h.mu.Unlock()
	tell()
}

// hostWatcher is the cluster of a client with instances at the address of a host.
type hostWatcher interface {
	Rebuild()                // after a change of the host's state
	Wary(now mono.Time) bool // calls wait only briefly for a connection
}

// changedLocked wakes the waiting callers and returns a function that notifies the clusters, to be
// called without the lock.
func (h *host) changedLocked() func() {
	close(h.changed)
	h.changed = make(chan struct{})
	watchers := make([]hostWatcher, 0, len(h.watchers))
	for w := range h.watchers {
		watchers = append(watchers, w)
	}
	return func() {
		for _, w := range watchers {
			w.Rebuild()
		}
	}
}

func (h *host) watch(w hostWatcher) {
	h.mu.Lock()
	h.watchers[w]++
	h.mu.Unlock()
}

func (h *host) unwatch(w hostWatcher) {
	h.mu.Lock()
	if h.watchers[w]--; h.watchers[w] == 0 {
		delete(h.watchers, w)
	}
	h.mu.Unlock()
}

// isExtra reports whether c was made under more load than connections are always kept for.
func (h *host) isExtra(c *callerHalf) bool {
	list := *h.ready.Load()
	return slices.Contains(list[min(len(list), h.wantConns()):], c)
}

// spawn runs f on a goroutine that close waits for.
func (h *host) spawn(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.wg.Go(f)
	}
}

// close ends all connections and waits for their goroutines.
func (h *host) close() {
	h.mu.Lock()
	h.closed = true
	if h.retry != nil {
		h.retry.Stop()
	}
	if h.patience != nil {
		h.patience.Stop()
	}
	all := make([]*clientConn, 0, len(h.all))
	for c := range h.all {
		all = append(all, c)
	}
	tell := h.changedLocked()
	h.mu.Unlock()
	h.cancel()
	tell()
	for _, c := range all {
		c.close()
	}
	h.pool.standbys.forget()
	h.wg.Wait()
}

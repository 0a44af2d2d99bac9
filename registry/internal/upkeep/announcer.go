package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// ErrTaken is what a Backend answers for an item that another process has announced since.
var ErrTaken = errors.New("another process has taken the instance over")

// How long Close waits for a request that is on its way, then for a server that does not answer, and for one
// that does but has much to withdraw.
const (
	lastRequest    = time.Second
	withdrawal     = 2 * time.Second
	withdrawalMost = 10 * time.Second
)

// Item is what a Backend is to make true of one instance.
type Item struct {
	Service, Key string
	// Want is what the registry is to have; nil means nothing.
	Want *registry.Instance
	// Have is what the registry had of this process when it last answered; nil where that is nothing, or
	// not known.
	Have *registry.Instance
	// Force is set when a caller has just registered the instance: then the key is taken from whoever has
	// it. Otherwise a key that somebody else has is left to him, and the answer is ErrTaken.
	Force bool
}

// Backend writes to a registry what an Announcer wants there.
type Backend interface {
	// Apply makes the items true and renews what keeps them alive. It returns one error for each item: nil,
	// ErrTaken, or why the registry does not take it. err says instead that it is not known what became of
	// the items; they come again. One goroutine calls it.
	Apply(ctx context.Context, items []Item) (results []error, err error)
}

// Announcer keeps instances in a registry. Callers say what they want there; one goroutine makes it so: it
// applies what is new at once, and everything at every renewal. A lost lease, a record that somebody has
// deleted and a write whose outcome is unknown are then the same case.
type Announcer struct {
	backend Backend
	every   time.Duration
	log     *slog.Logger
	ctx     context.Context // of requests; ends soon after stop
	cancel  context.CancelFunc
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when run has returned
	kick    chan struct{} // holds a token when there is something to write

	mu      sync.Mutex // guards what follows
	closed  bool
	started bool
	records map[recordID]*record
	dirty   map[recordID]bool // records that may differ from what the registry has
	trouble error             // why the last attempt failed
}

type recordID struct{ service, key string }

// record is what callers want under one key.
type record struct {
	want    *registry.Instance // nil: nothing
	have    *registry.Instance // what the registry had when it last answered
	force   bool
	version int // counts the changes of want
	waiters []*waiter
}

// waiter is a caller that waits until a version of the record is written.
type waiter struct {
	want    *registry.Instance
	version int
	done    chan error // holds one
}

// NewAnnouncer returns an announcer that renews what it has announced at the interval every. It starts
// its goroutine with the first instance.
func NewAnnouncer(b Backend, every time.Duration, log *slog.Logger) *Announcer {
	ctx, cancel := context.WithCancel(context.Background())
	return &Announcer{
		backend: b, every: every, log: log, ctx: ctx, cancel: cancel,
		stop: make(chan struct{}), done: make(chan struct{}), kick: make(chan struct{}, 1),
		records: make(map[recordID]*record), dirty: make(map[recordID]bool),
	}
}

// Register does what a registry.Registrar promises.
func (a *Announcer) Register(ctx context.Context, in registry.Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	in = in.Clone()
	err := a.change(ctx, recordID{in.Service, in.Key()}, &in, func(r *record, w *waiter) bool {
		r.waiters = slices.DeleteFunc(r.waiters, func(o *waiter) bool { return o == w })
		if r.version != w.version {
			return false // somebody wanted something else since
		}
		if n := len(r.waiters); n > 0 {
			r.want = r.waiters[n-1].want
		} else {
			r.want, r.force = r.have, false
		}
		r.version++
		return true
	})
	if err != nil && !errors.Is(err, registry.ErrClosed) {
		return fmt.Errorf("register %q of service %q: %w", in.Key(), in.Service, err)
	}
	return err
}

// Deregister does what a registry.Registrar promises. When ctx ends first, the record goes as soon as the
// registry can be reached.
func (a *Announcer) Deregister(ctx context.Context, in registry.Instance) error {
	err := a.change(ctx, recordID{in.Service, in.Key()}, nil, func(*record, *waiter) bool { return false })
	if err != nil && !errors.Is(err, registry.ErrClosed) {
		return fmt.Errorf("deregister %q of service %q: %w", in.Key(), in.Service, err)
	}
	return err
}

// change notes what is wanted, wakes the goroutine that writes it, and waits. When ctx ends first it calls
// abandonLocked, which reports whether it has changed what is wanted.
func (a *Announcer) change(ctx context.Context, id recordID, want *registry.Instance, abandonLocked func(*record, *waiter) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w, err := a.enter(id, want)
	if w == nil {
		return err
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case err := <-w.done: // it came in while this goroutine waited for the lock
		return err
	default:
	}
	// The record may have gone, but then w was told.
	if abandonLocked(a.records[id], w) {
		a.wakeLocked(id)
	}
	return because(context.Cause(ctx), a.trouble)
}

// enter notes what is wanted and returns who waits for it, or nobody where nothing is to be done.
func (a *Announcer) enter(id recordID, want *registry.Instance) (*waiter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, registry.ErrClosed
	}
	r := a.records[id]
	if r == nil && want == nil {
		return nil, nil
	}
	if r == nil {
		r = new(record)
		a.records[id] = r
	}
	r.want, r.force = want, want != nil
	r.version++
	w := &waiter{want, r.version, make(chan error, 1)}
	r.waiters = append(r.waiters, w)
	a.wakeLocked(id)
	return w, nil
}

func (a *Announcer) wakeLocked(id recordID) {
	a.dirty[id] = true
	if !a.started {
		a.started = true
		go a.run()
	}
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// Close withdraws everything that was announced and stops the goroutine. Where the server does not answer
// in time it says so, and the instances go by themselves.
func (a *Announcer) Close() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		<-a.done
		return nil
	}
	a.closed = true
	started := a.started
	a.mu.Unlock()
	close(a.stop)
	defer a.cancel()
	if !started {
		close(a.done)
		return nil
	}
	// A request that is cut off may still be carried out, after what withdraws it.
	late := time.AfterFunc(lastRequest, a.cancel)
	<-a.done
	late.Stop()
	return a.withdraw()
}

func (a *Announcer) withdraw() error {
	a.mu.Lock()
	var items []Item
	for id, r := range a.records {
		r.finishLocked(r.version, registry.ErrClosed)
		items = append(items, Item{Service: id.service, Key: id.key, Have: r.have})
	}
	a.mu.Unlock()
	if len(items) == 0 {
		return nil
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), withdrawalMost)
	defer cancel()
	var delay Delay
	for {
		results, err := a.backend.Apply(ctx, items)
		if err == nil {
			results = slices.DeleteFunc(results, func(err error) bool { return errors.Is(err, ErrTaken) })
			err = errors.Join(results...)
		} else if !IsHopeless(err) && time.Since(began) < withdrawal && delay.Wait(ctx, nil) {
			continue
		}
		if err != nil {
			return fmt.Errorf("withdraw instances (by themselves they go when they are no longer renewed): %w", err)
		}
		return nil
	}
}

// finishLocked tells those that wait for a version up to this one.
func (r *record) finishLocked(version int, err error) {
	r.waiters = slices.DeleteFunc(r.waiters, func(w *waiter) bool {
		if w.version > version {
			return false
		}
		w.done <- err
		return true
	})
}

// run makes the registry have what is wanted until the announcer is closed.
func (a *Announcer) run() {
	defer close(a.done)
	var delay Delay
	renewal := time.NewTimer(a.every)
	defer renewal.Stop()
	for {
		items, versions := a.collect()
		if len(items) > 0 {
			results, err := a.backend.Apply(a.ctx, items)
			if a.stopping() {
				return
			}
			a.note(err)
			if err != nil {
				// Who knows what the registry has after an outage. New wishes wait as well: they would fail
				// for the same reason.
				a.markAll()
				delay.Wait(a.ctx, a.stop)
				continue
			}
			a.settle(items, versions, results)
			delay = Delay{}
		}
		select {
		case <-a.stop:
			return
		case <-a.kick:
		case <-renewal.C:
			renewal.Reset(a.every)
			a.markAll()
		}
	}
}

func (a *Announcer) stopping() bool {
	select {
	case <-a.stop:
		return true
	default:
		return a.ctx.Err() != nil
	}
}

func (a *Announcer) markAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.records {
		a.dirty[id] = true
	}
}

// collect returns what may differ, with the versions that the items are.
func (a *Announcer) collect() (items []Item, versions []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.dirty {
		r := a.records[id]
		if r == nil {
			delete(a.dirty, id)
			continue
		}
		items = append(items, Item{Service: id.service, Key: id.key, Want: r.want, Have: r.have, Force: r.force})
		versions = append(versions, r.version)
	}
	return items, versions
}

// note keeps the reason of a failure for callers that give up, and logs where an outage begins and ends:
// nobody may be waiting. What trying again cannot mend goes to those who wait.
func (a *Announcer) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.trouble
	a.trouble = err
	switch {
	case err != nil && before == nil:
		a.log.Warn("the registry cannot be reached; instances stay announced until they expire", "error", err)
	case err == nil && before != nil:
		a.log.Info("the registry is back, and has all instances")
	}
	if IsHopeless(err) {
		for id, r := range a.records {
			a.refuseLocked(id, r, r.version, err)
		}
	}
}

// settle notes what became of the items.
func (a *Announcer) settle(items []Item, versions []int, results []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, item := range items {
		id := recordID{item.Service, item.Key}
		r, err := a.records[id], results[i]
		switch {
		case err != nil && !errors.Is(err, ErrTaken):
			a.refusedLocked(id, r, versions[i], err)
			continue
		case err != nil:
			r.have = nil
		default:
			r.have = item.Want
		}
		r.finishLocked(versions[i], nil)
		if r.version != versions[i] {
			continue // something else is wanted by now
		}
		if err != nil && item.Want != nil {
			// To write it again whenever the key is free would bring the old record back in the moment in
			// which the new owner is lost.
			a.log.Info("another process has taken an instance over", "service", item.Service, "instance", item.Key)
			r.want = nil
		}
		r.force = false
		delete(a.dirty, id)
		if r.want == nil {
			delete(a.records, id)
		}
	}
}

// refusedLocked notes that the registry does not take an item. It is tried again at the next renewal.
func (a *Announcer) refusedLocked(id recordID, r *record, version int, err error) {
	if len(r.waiters) == 0 {
		a.log.Warn("the registry refuses an instance that it had", "service", id.service, "instance", id.key, "error", err)
	}
	if r.version == version {
		delete(a.dirty, id)
	}
	a.refuseLocked(id, r, version, err)
}

// refuseLocked gives up a version that the registry does not take. What callers have just asked for is
// forgotten; what had been there before stays wanted.
func (a *Announcer) refuseLocked(id recordID, r *record, version int, err error) {
	r.finishLocked(version, err)
	if r.version != version || !r.force {
		return
	}
	r.want, r.force = r.have, false
	if r.want == nil {
		delete(a.records, id)
		delete(a.dirty, id)
	}
}

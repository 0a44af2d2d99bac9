package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/anser-rpc/anser/registry"
)

// announcer keeps records in etcd. Callers say what they want there; one goroutine makes it so. It
// alone talks to etcd, and does so in one order: get a lease or keep it alive, compare what hangs on
// it with what should, write what differs. A lost lease, a deleted key and a write whose outcome is
// unknown are then the same case: something differs, so it is written again.
type announcer struct {
	client *client
	log    *slog.Logger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
	kick   chan struct{} // holds a token when there is something to write

	lease lease // of the goroutine in run alone, and of close after it

	mu      sync.Mutex // guards what follows
	closed  bool
	started bool
	records map[string]*record // by etcd key
	dirty   map[string]bool    // keys whose record may differ from what etcd has
	trouble error              // why the last attempt failed
}

// record is what callers want under one key.
type record struct {
	want string // "": nothing
	have string // what etcd had when it last answered; "": nothing
	// force is set while the record has not been written since a caller registered it. It then takes
	// the key over from whoever has it; later writes leave it to a new owner.
	force   bool
	version int // counts the changes of want
	waiters []*waiter
}

// waiter is a caller that waits until a version of the record is written.
type waiter struct {
	want    string
	version int
	done    chan error // holds one
}

func newAnnouncer(ctx context.Context, c *client, ttl time.Duration, log *slog.Logger) *announcer {
	ctx, cancel := context.WithCancel(ctx)
	return &announcer{
		client: c, log: log, ctx: ctx, cancel: cancel,
		done: make(chan struct{}), kick: make(chan struct{}, 1),
		lease:   lease{client: c, ctx: ctx, ttl: ttl},
		records: make(map[string]*record), dirty: make(map[string]bool),
	}
}

// put announces value under key and waits until etcd has it. When ctx ends first, what was there
// before comes back.
func (a *announcer) put(ctx context.Context, key, value string) error {
	return a.change(ctx, key, value, func(r *record, w *waiter) {
		r.waiters = slices.DeleteFunc(r.waiters, func(o *waiter) bool { return o == w })
		if r.version != w.version {
			return // somebody wanted something else since
		}
		if n := len(r.waiters); n > 0 {
			r.want = r.waiters[n-1].want
		} else {
			r.want, r.force = r.have, false
		}
		r.version++
		a.wakeLocked(key)
	})
}

// remove takes back what was announced under key, and waits until etcd has removed it.
func (a *announcer) remove(ctx context.Context, key string) error {
	return a.change(ctx, key, "", func(*record, *waiter) {})
}

// change notes what is wanted under key, wakes the goroutine that writes it, and waits. When ctx
// ends first it calls abandonLocked.
func (a *announcer) change(ctx context.Context, key, want string, abandonLocked func(*record, *waiter)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return registry.ErrClosed
	}
	r := a.records[key]
	if r == nil && want == "" {
		a.mu.Unlock()
		return nil
	}
	if r == nil {
		r = new(record)
		a.records[key] = r
	}
	r.want, r.force = want, want != ""
	r.version++
	w := &waiter{want, r.version, make(chan error, 1)}
	r.waiters = append(r.waiters, w)
	a.wakeLocked(key)
	a.mu.Unlock()

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
	abandonLocked(r, w)
	return because(ctx.Err(), a.trouble)
}

func (a *announcer) wakeLocked(key string) {
	a.dirty[key] = true
	if !a.started {
		a.started = true
		go a.run()
	}
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// close stops the goroutine and withdraws everything at once, by giving the lease back.
func (a *announcer) close() error {
	a.mu.Lock()
	a.closed = true
	started := a.started
	a.mu.Unlock()
	a.cancel()
	if !started {
		return nil
	}
	<-a.done
	a.mu.Lock()
	for _, r := range a.records {
		r.finishLocked(r.version, registry.ErrClosed)
	}
	a.mu.Unlock()
	return a.lease.revoke()
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

// run makes etcd have what is wanted until the announcer is closed.
func (a *announcer) run() {
	defer close(a.done)
	defer a.lease.dropStream()
	var delay retryDelay
	for {
		err := a.sync()
		if a.ctx.Err() != nil {
			return
		}
		a.note(err)
		if err != nil {
			// New wishes wait as well: they would fail for the same reason.
			delay.wait(a.ctx, a.client)
			continue
		}
		delay = retryDelay{}
		select {
		case <-a.ctx.Done():
		case <-a.kick:
		case <-time.After(time.Until(a.lease.renewAt)):
		}
	}
}

// sync does one round: the lease, then what differs.
func (a *announcer) sync() error {
	for {
		err := a.syncLease()
		if err == nil {
			err = a.writeDirty()
		}
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
		a.log.Warn("the registry dropped the lease; registering again", "lease", fmt.Sprintf("%x", a.lease.id))
		a.lease.id = 0
	}
}

func (a *announcer) syncLease() error {
	if a.lease.id == 0 {
		if err := a.lease.grant(); err != nil {
			return err
		}
		a.markAll()
		return nil
	}
	if time.Now().Before(a.lease.renewAt) {
		return nil
	}
	keys, err := a.lease.renew()
	if err != nil {
		return err
	}
	a.compare(keys)
	return nil
}

// markAll has every record written again.
func (a *announcer) markAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.records {
		a.dirty[key] = true
	}
}

// compare marks what is missing on the lease, and what is there without being wanted.
func (a *announcer) compare(keys []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	there := make(map[string]bool)
	for _, key := range keys {
		there[key] = true
		if a.records[key] == nil { // a write that was given up came through after all
			a.records[key] = new(record)
			a.dirty[key] = true
		}
	}
	for key, r := range a.records {
		if there[key] != (r.want != "") {
			a.dirty[key] = true
		}
	}
}

// note keeps the reason of a failure for callers that give up, and logs where an outage begins and
// ends: nobody may be waiting. What trying again cannot mend goes to those who wait.
func (a *announcer) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.trouble
	a.trouble = err
	switch {
	case err != nil && before == nil:
		a.log.Warn("the registry cannot be reached; instances stay announced until the lease runs out", "error", err)
	case err == nil && before != nil:
		a.log.Info("the registry is back, and has all instances")
	}
	if hopeless(err) {
		for key, r := range a.records {
			a.refuseLocked(key, r, r.version, err)
		}
	}
}

// refuseLocked gives up a version that etcd does not take. What callers have just asked for is
// forgotten; what had been there before stays wanted.
func (a *announcer) refuseLocked(key string, r *record, version int, err error) {
	r.finishLocked(version, err)
	if r.version != version || !r.force {
		return
	}
	r.want, r.force = r.have, false
	if r.want == "" {
		delete(a.records, key)
		delete(a.dirty, key)
	}
}

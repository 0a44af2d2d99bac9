// Package announce keeps instances in a registry for as long as a process wants them there. Registries on
// servers that answer one request for one record use it.
package announce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// workers is how many records are written or renewed at once.
const workers = 16

// A Store writes records. Every method returns within seconds, also when the server does not answer, and
// soon after ctx is done. Begin is called alone; Renew and Write are called for several keys at once, each
// key in one call at a time.
type Store interface {
	// Begin makes sure that records can be written. fresh says that the server has dropped all that were.
	Begin(ctx context.Context) (fresh bool, err error)
	// Renew gives a sign of life for a record, and reports whether the server has it as this process
	// wrote it.
	Renew(ctx context.Context, key string, in *registry.Instance) (ok bool, err error)
	// Write makes the server have the record, or none where in is nil. It replaces or removes the record
	// of another process only if force is set; otherwise it leaves that alone and reports taken.
	Write(ctx context.Context, key string, in *registry.Instance, force bool) (taken bool, err error)
}

// Config says how an Announcer works. All fields are needed.
type Config struct {
	Store Store
	// Every is the time between two signs of life.
	Every time.Duration
	// Hopeless reports whether a request that failed with the error would fail again.
	Hopeless func(error) bool
	Log      *slog.Logger
}

// Announcer keeps records in a registry. Callers say what they want there; one goroutine, which starts with
// the first wish, makes it so: it gives signs of life, compares what the server has with what it should have,
// and writes what differs. A lost session, a deleted record and a write whose outcome is unknown are then the
// same case. All methods are safe for concurrent use.
type Announcer struct {
	Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
	kick   chan struct{} // holds a token when there is something to write
	hurry  chan struct{} // holds a token when a pause after a failure is to end

	renewAt time.Time // of the goroutine in run alone

	mu      sync.Mutex // guards what follows
	closed  bool
	started bool
	records map[string]*record
	dirty   map[string]bool // keys whose record may differ from what the server has
	trouble error           // why the last round failed
}

// record is what callers want under one key.
type record struct {
	want *registry.Instance // nil: nothing
	have *registry.Instance // what the server had when it last answered
	// force is set while the record has not been written since a caller registered it. It then takes the
	// key over from whoever has it; later writes leave it to a new owner.
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

// New returns an Announcer that holds no goroutine yet.
func New(cfg Config) *Announcer {
	ctx, cancel := context.WithCancel(context.Background())
	return &Announcer{
		Config: cfg, ctx: ctx, cancel: cancel,
		done: make(chan struct{}), kick: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		records: make(map[string]*record), dirty: make(map[string]bool),
	}
}

// Put announces the instance under key, waits until the server has it, and keeps it there. It keeps in. When
// ctx ends first, what was there before comes back.
func (a *Announcer) Put(ctx context.Context, key string, in *registry.Instance) error {
	return a.change(ctx, key, in, func(r *record, w *waiter) {
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

// Remove takes back what was announced under key, and waits until the server has removed it. When ctx ends
// first, it goes later.
func (a *Announcer) Remove(ctx context.Context, key string) error {
	return a.change(ctx, key, nil, func(*record, *waiter) {})
}

// Hurry ends a pause after a failure: the server is back.
func (a *Announcer) Hurry() { token(a.hurry) }

// Close stops the goroutine and returns the keys under which the server may still have records. Whoever waits
// gets ErrClosed.
func (a *Announcer) Close() []string {
	a.mu.Lock()
	a.closed = true
	started := a.started
	a.mu.Unlock()
	a.cancel()
	if started {
		<-a.done
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.records {
		r.finishLocked(r.version, registry.ErrClosed)
	}
	return slices.Sorted(maps.Keys(a.records))
}

// change notes what is wanted under key, wakes the goroutine that writes it, and waits. When ctx ends first it
// calls abandonLocked.
func (a *Announcer) change(ctx context.Context, key string, want *registry.Instance, abandonLocked func(*record, *waiter)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return registry.ErrClosed
	}
	r := a.records[key]
	if r == nil && want == nil {
		a.mu.Unlock()
		return nil
	}
	if r == nil {
		r = new(record)
		a.records[key] = r
	}
	r.want, r.force = want, want != nil
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
	return Because(ctx.Err(), a.trouble)
}

func (a *Announcer) wakeLocked(key string) {
	a.dirty[key] = true
	if !a.started {
		a.started = true
		go a.run()
	}
	token(a.kick)
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

func token(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Because returns an error that is err and says why it came to that, where there is a reason.
func Because(err, reason error) error {
	if reason == nil || errors.Is(reason, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}

package upkeep

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"

	"github.com/anser-rpc/anser/registry"
)

// Terms configures a Ledger. All fields are required.
type Terms[K comparable] struct {
	// Run makes the registry match the wanted records. The ledger runs it on a goroutine that
	// starts with the first wish; it must return soon after Close.
	Run func()
	// Hopeless reports whether a request that failed with this error would fail again.
	Hopeless func(error) bool
	// Ended returns the error of a context that is done: its Err or its cause.
	Ended func(context.Context) error
	// Outage is the end of a log message: until when instances stay announced if the registry
	// cannot be reached.
	Outage string
	// Attrs returns the log attributes that identify a record.
	Attrs func(K) []any
	Log   *slog.Logger
}

// Ledger holds the records that callers want in the registry, and the records of the registry when
// it last answered. Callers change the wanted ones with Put and Remove; one goroutine takes the
// records that are Due, writes them, and reports the results with Settle or Refuse. A V is a
// record; the zero V means that there is none. All methods are safe for concurrent use.
type Ledger[K, V comparable] struct {
	Terms[K]
	kick chan struct{} // holds a token if there is something to write
	done chan struct{} // closed when Run has returned, or will never start

	mu      sync.Mutex // guards the fields below
	closed  bool
	started bool
	records map[K]*record[V]
	dirty   map[K]bool // keys whose record may differ from what the registry has
	trouble error      // why the last attempt failed
}

// record is the wanted state of one key.
type record[V comparable] struct {
	want V
	have V // what the registry had when it last answered
	// force is set until the record has been written after a caller registered it. That write
	// takes the key from its present owner; later writes leave it to a new owner.
	force   bool
	version int // counts the changes of want
	waiters []*waiter[V]
}

// waiter is a caller that waits until a version of the record is written.
type waiter[V comparable] struct {
	want    V
	version int
	done    chan error // capacity 1
}

// Wish is the wanted state of a record.
type Wish[K, V comparable] struct {
	Key  K
	Want V
	// Force is set if a caller has just registered the record: then the key is taken from its
	// present owner. Otherwise a key of another owner is left unchanged.
	Force   bool
	version int
}

// NewLedger returns a ledger. It starts no goroutine yet.
func NewLedger[K, V comparable](t Terms[K]) *Ledger[K, V] {
	return &Ledger[K, V]{
		Terms: t, kick: make(chan struct{}, 1), done: make(chan struct{}),
		records: make(map[K]*record[V]), dirty: make(map[K]bool),
	}
}

// Put announces want under key, waits until the registry has it, and keeps it there. If ctx ends
// first, the previous record is wanted again.
func (l *Ledger[K, V]) Put(ctx context.Context, key K, want V) error { return l.change(ctx, key, want) }

// Remove withdraws the record under key, and waits until the registry has removed it. If ctx ends
// first, it is removed later.
func (l *Ledger[K, V]) Remove(ctx context.Context, key K) error {
	var nothing V
	return l.change(ctx, key, nothing)
}

// change sets the wanted record under key, wakes the writing goroutine, and waits.
func (l *Ledger[K, V]) change(ctx context.Context, key K, want V) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, w, err := l.enter(key, want)
	if w == nil {
		return err
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case err := <-w.done: // it arrived while this goroutine waited for the lock
		return err
	default:
	}
	var nothing V
	if want != nothing {
		l.takeBackLocked(key, r, w)
	}
	return Because(l.Ended(ctx), l.trouble)
}

// enter sets the wanted record and returns a waiter for it, or nil if there is nothing to do.
func (l *Ledger[K, V]) enter(key K, want V) (*record[V], *waiter[V], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, registry.ErrClosed
	}
	var nothing V
	r := l.records[key]
	if r == nil && want == nothing {
		return nil, nil, nil
	}
	if r == nil {
		r = new(record[V])
		l.records[key] = r
	}
	r.want, r.force = want, want != nothing
	r.version++
	w := &waiter[V]{want, r.version, make(chan error, 1)}
	r.waiters = append(r.waiters, w)
	l.wakeLocked(key)
	return r, w, nil
}

// takeBackLocked restores the record that was wanted before a caller that gives up.
func (l *Ledger[K, V]) takeBackLocked(key K, r *record[V], w *waiter[V]) {
	r.waiters = slices.DeleteFunc(r.waiters, func(o *waiter[V]) bool { return o == w })
	if r.version != w.version {
		return // another call has changed the record since
	}
	if n := len(r.waiters); n > 0 {
		r.want = r.waiters[n-1].want
	} else {
		r.want, r.force = r.have, false
	}
	r.version++
	l.wakeLocked(key)
}

func (l *Ledger[K, V]) wakeLocked(key K) {
	l.dirty[key] = true
	if !l.started {
		l.started = true
		go func() { defer close(l.done); l.Run() }()
	}
	Signal(l.kick)
}

// Kick returns a channel that holds a token when a record has become Due.
func (l *Ledger[K, V]) Kick() <-chan struct{} { return l.kick }

// Due yields, in any order, the records that may differ from those of the registry. The ledger is
// locked meanwhile: the body of the loop must not use it.
func (l *Ledger[K, V]) Due() iter.Seq[Wish[K, V]] {
	return func(yield func(Wish[K, V]) bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for key := range l.dirty {
			r := l.records[key]
			if r == nil {
				delete(l.dirty, key)
				continue
			}
			if !yield(Wish[K, V]{key, r.want, r.force, r.version}) {
				return
			}
		}
	}
}

// Kept yields, in any order, the wanted records that are not Due. The ledger is locked meanwhile:
// the body of the loop must not use it.
func (l *Ledger[K, V]) Kept() iter.Seq[Wish[K, V]] {
	return func(yield func(Wish[K, V]) bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		var nothing V
		for key, r := range l.records {
			if r.want == nothing || l.dirty[key] {
				continue
			}
			if !yield(Wish[K, V]{key, r.want, r.force, r.version}) {
				return
			}
		}
	}
}

// Mark makes a key Due. A key without a wanted record will be removed.
func (l *Ledger[K, V]) Mark(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.records[key] == nil {
		l.records[key] = new(record[V])
	}
	l.dirty[key] = true
}

// MarkAll makes every record Due.
func (l *Ledger[K, V]) MarkAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.records {
		l.dirty[key] = true
	}
}

// Settle records that the registry has the wanted record, or with taken that another process owns
// the key.
func (l *Ledger[K, V]) Settle(w Wish[K, V], taken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var nothing V
	r := l.records[w.Key]
	r.have = w.Want
	if taken {
		r.have = nothing
	}
	r.finishLocked(w.version, nil)
	if r.version != w.version {
		return // another record is wanted by now
	}
	if taken && w.Want != nothing {
		// If it were written again whenever the key is free, the old record would return at the
		// moment when the new owner is lost.
		l.Log.Info("another process has taken an instance over", l.Attrs(w.Key)...)
		r.want = nothing
	}
	r.force = false
	delete(l.dirty, w.Key)
	if r.want == nothing {
		delete(l.records, w.Key)
	}
}

// Refuse records that the registry rejected the record. It is no longer Due until it is marked.
func (l *Ledger[K, V]) Refuse(w Wish[K, V], err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[w.Key]
	if len(r.waiters) == 0 {
		l.Log.Warn("the registry rejects an instance that it accepted before", append(l.Attrs(w.Key), "error", err)...)
	}
	if r.version == w.version {
		delete(l.dirty, w.Key)
	}
	l.refuseLocked(w.Key, r, w.version, err)
}

// refuseLocked gives up a version that the registry rejects. The wish of a waiting caller is
// dropped; the previous record stays wanted.
func (l *Ledger[K, V]) refuseLocked(key K, r *record[V], version int, err error) {
	r.finishLocked(version, err)
	if r.version != version || !r.force {
		return
	}
	r.want, r.force = r.have, false
	var nothing V
	if r.want == nothing {
		delete(l.records, key)
		delete(l.dirty, key)
	}
}

// Note records the error of an attempt, nil on success, for callers that give up. It also logs
// where an outage begins and ends, since no caller may be waiting. Waiting callers receive a
// permanent error at once.
func (l *Ledger[K, V]) Note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.trouble
	l.trouble = err
	switch {
	case err != nil && before == nil:
		l.Log.Warn("the registry cannot be reached; instances stay announced until "+l.Outage, "error", err)
	case err == nil && before != nil:
		l.Log.Info("the registry is back, and has all instances")
	}
	if err != nil && l.Hopeless(err) {
		for key, r := range l.records {
			l.refuseLocked(key, r, r.version, err)
		}
	}
}

// Close makes all further calls fail with ErrClosed, and reports whether it is the first call of
// Close.
func (l *Ledger[K, V]) Close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closed = true
	if !l.started {
		close(l.done)
	}
	return true
}

// Leave must be called after Close. It waits until Run has returned, ends waiting calls with
// ErrClosed, and returns, in any order, the keys under which the registry may still have records.
func (l *Ledger[K, V]) Leave() []K {
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []K
	for key, r := range l.records {
		r.finishLocked(r.version, registry.ErrClosed)
		keys = append(keys, key)
	}
	return keys
}

// finishLocked ends the waiters for versions up to this one.
func (r *record[V]) finishLocked(version int, err error) {
	r.waiters = slices.DeleteFunc(r.waiters, func(w *waiter[V]) bool {
		if w.version > version {
			return false
		}
		w.done <- err
		return true
	})
}

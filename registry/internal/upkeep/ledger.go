package upkeep

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"

	"github.com/anser-rpc/anser/registry"
)

// Terms say how a Ledger works. All fields are needed.
type Terms[K comparable] struct {
	// Run makes the registry have what is wanted. The ledger runs it on a goroutine that begins with the
	// first wish; it returns soon after Close.
	Run func()
	// Hopeless reports whether a request that failed with the error would fail again.
	Hopeless func(error) bool
	// Ended returns the error of a context that is done: its own, or its cause.
	Ended func(context.Context) error
	// Outage says until when instances stay announced where the registry cannot be reached.
	Outage string
	// Attrs says in a line of the log which record it is about.
	Attrs func(K) []any
	Log   *slog.Logger
}

// Ledger holds what callers want the registry to have, and what it had when it last answered. Callers say what
// they want with Put and Remove; one goroutine takes what is Due, writes it, and says with Settle or Refuse what
// came of that. A V is a record, and the zero V that there is none. All methods are safe for concurrent use.
type Ledger[K, V comparable] struct {
	Terms[K]
	kick chan struct{} // holds a token when there is something to write
	done chan struct{} // closed when Run has returned, or will never begin

	mu      sync.Mutex // guards what follows
	closed  bool
	started bool
	records map[K]*record[V]
	dirty   map[K]bool // keys whose record may differ from what the registry has
	trouble error      // why the last attempt failed
}

// record is what callers want under one key.
type record[V comparable] struct {
	want V
	have V // what the registry had when it last answered
	// force is set while the record has not been written since a caller registered it. It then takes the
	// key over from whoever has it; later writes leave it to a new owner.
	force   bool
	version int // counts the changes of want
	waiters []*waiter[V]
}

// waiter is a caller that waits until a version of the record is written.
type waiter[V comparable] struct {
	want    V
	version int
	done    chan error // holds one
}

// Wish is a record as the registry is to have it.
type Wish[K, V comparable] struct {
	Key  K
	Want V
	// Force is set when a caller has just registered the record: then the key is taken from whoever has it.
	// Otherwise a key that somebody else has is left to him.
	Force   bool
	version int
}

// NewLedger returns a ledger that holds no goroutine yet.
func NewLedger[K, V comparable](t Terms[K]) *Ledger[K, V] {
	return &Ledger[K, V]{
		Terms: t, kick: make(chan struct{}, 1), done: make(chan struct{}),
		records: make(map[K]*record[V]), dirty: make(map[K]bool),
	}
}

// Put announces want under key, waits until the registry has it, and keeps it there. When ctx ends first, what
// was there before comes back.
func (l *Ledger[K, V]) Put(ctx context.Context, key K, want V) error { return l.change(ctx, key, want) }

// Remove takes back what was announced under key, and waits until the registry has removed it. When ctx ends
// first, it goes later.
func (l *Ledger[K, V]) Remove(ctx context.Context, key K) error {
	var nothing V
	return l.change(ctx, key, nothing)
}

// change notes what is wanted under key, wakes the goroutine that writes it, and waits.
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
	case err := <-w.done: // it came in while this goroutine waited for the lock
		return err
	default:
	}
	var nothing V
	if want != nothing {
		l.takeBackLocked(key, r, w)
	}
	return Because(l.Ended(ctx), l.trouble)
}

// enter notes what is wanted and returns who waits for it, or nobody where nothing is to be done.
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

// takeBackLocked wants again what was wanted before a caller that gives up.
func (l *Ledger[K, V]) takeBackLocked(key K, r *record[V], w *waiter[V]) {
	r.waiters = slices.DeleteFunc(r.waiters, func(o *waiter[V]) bool { return o == w })
	if r.version != w.version {
		return // somebody wanted something else since
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

// Kick has a token when something has become Due.
func (l *Ledger[K, V]) Kick() <-chan struct{} { return l.kick }

// Due yields, in any order, what may differ from what the registry has. The body of the loop must not use the
// ledger, which is locked.
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

// Kept yields, in any order, what is wanted and not Due. The body of the loop must not use the ledger, which is
// locked.
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

// Mark makes a key Due. One that nobody has wished for is to be removed.
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

// Settle notes that the registry has what was wished for, or that it is taken: another process has the key.
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
		return // something else is wanted by now
	}
	if taken && w.Want != nothing {
		// To write it again whenever the key is free would bring the old record back in the moment in which
		// the new owner is lost.
		l.Log.Info("another process has taken an instance over", l.Attrs(w.Key)...)
		r.want = nothing
	}
	r.force = false
	delete(l.dirty, w.Key)
	if r.want == nothing {
		delete(l.records, w.Key)
	}
}

// Refuse notes that the registry does not take what was wished for. It is not Due any more until it is marked.
func (l *Ledger[K, V]) Refuse(w Wish[K, V], err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[w.Key]
	if len(r.waiters) == 0 {
		l.Log.Warn("the registry refuses an instance that it had", append(l.Attrs(w.Key), "error", err)...)
	}
	if r.version == w.version {
		delete(l.dirty, w.Key)
	}
	l.refuseLocked(w.Key, r, w.version, err)
}

// refuseLocked gives up a version that the registry does not take. What callers have just asked for is
// forgotten; what had been there before stays wanted.
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

// Note keeps the reason of a failure, nil where there was none, for callers that give up, and logs where an
// outage begins and ends: nobody may be waiting. What trying again cannot mend goes to those who wait.
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

// Close refuses all further wishes with ErrClosed, and reports whether it is the first to.
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

// Leave waits, after Close, until Run has returned, gives ErrClosed to whoever still waits, and returns, in any
// order, the keys under which the registry may still have records.
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

// finishLocked tells those that wait for a version up to this one.
func (r *record[V]) finishLocked(version int, err error) {
	r.waiters = slices.DeleteFunc(r.waiters, func(w *waiter[V]) bool {
		if w.version > version {
			return false
		}
		w.done <- err
		return true
	})
}

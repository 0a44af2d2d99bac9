package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Several combines registries into one, for a migration between registries, or for services that
// are announced in several. The order matters: if two of them have an instance under the same key,
// the first one is used.
//
//   - Register and Deregister apply to every member that is a Registrar. They wait for all of
//     them, but at most five seconds after the first success. The error then names the members
//     without the change, and the change is retried there in the background until it succeeds, or
//     until the key is registered or deregistered again. A change that fails on every member is
//     not retried.
//   - Watch merges the lists. A member in trouble keeps its last list, and the others continue.
//     Its error is reported to trouble, and again after each update while it lasts. The first
//     update waits for all members except those in trouble, and at most three seconds if one has
//     answered.
//   - Services returns the union. If a member that is a Lister fails, the names of the others are
//     returned with an error.
//   - The result is a Store if a member is; the first such member keeps the documents.
//   - Close closes the members that are an io.Closer.
func Several(members ...Resolver) (Registry, error) {
	if len(members) == 0 {
		return nil, errors.New("several registries: none was given")
	}
	s := &several{members: slices.Clone(members), slots: make(map[string]*severalSlot)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	var store Store
	for i, m := range members {
		if m == nil {
			return nil, fmt.Errorf("several registries: number %d is nil", i+1)
		}
		if st, ok := m.(Store); ok && store == nil {
			store = st
		}
	}
	if store != nil {
		return &severalStore{s, store}, nil
	}
	return s, nil
}

type several struct {
	members []Resolver
	ctx     context.Context // ends with the cause ErrClosed
	cancel  context.CancelCauseFunc
	closing sync.Once
	wg      sync.WaitGroup // the goroutines that retry

	mu     sync.Mutex // guards the fields below
	closed bool
	slots  map[string]*severalSlot // by service and key
}

// severalStore is the result of Several if a member is a Store.
type severalStore struct {
	*several
	Store
}

// severalSlot serializes the changes of one key, so that all members end in the same state.
type severalSlot struct {
	turn  chan struct{} // holds one token while a change is in progress
	users int           // guarded by several.mu, like retry
	retry *severalRetry // nil if there is none
}

// severalRetry is the background retry of one key.
type severalRetry struct {
	cancel context.CancelFunc
	done   chan struct{}
}

const (
	severalGrace    = 5 * time.Second // for members slower than the first
	severalRetryMin = time.Second
	severalRetryMax = 30 * time.Second
)

// Register implements Registrar.
func (s *several) Register(ctx context.Context, in Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	in = in.Clone()
	return s.change(ctx, in, func(ctx context.Context, r Registrar) error { return r.Register(ctx, in) })
}

// Deregister implements Registrar.
func (s *several) Deregister(ctx context.Context, in Instance) error {
	in = in.Clone()
	return s.change(ctx, in, func(ctx context.Context, r Registrar) error { return r.Deregister(ctx, in) })
}

// change applies a change to all members.
func (s *several) change(ctx context.Context, in Instance, do func(context.Context, Registrar) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	key := in.Service + "/" + in.Key()
	slot, err := s.enter(key)
	if err != nil {
		return err
	}
	defer s.leave(key, slot)
	select {
	case slot.turn <- struct{}{}:
		defer func() { <-slot.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.halt(slot)
	took, errs := s.all(ctx, do)
	if len(errs) == 0 {
		if took == 0 {
			return errors.New("none of the registries can announce instances: give one that is a registry.Registrar")
		}
		return nil
	}
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	if took > 0 {
		s.keepTrying(key, slot, errs, do)
	}
	return s.describe(took, errs)
}

// describe joins the errors of members, with their positions.
func (s *several) describe(took int, errs map[int]error) error {
	var all []error
	for i := range s.members {
		if err := errs[i]; err != nil {
			all = append(all, fmt.Errorf("registry %d (%T): %w", i+1, s.members[i], err))
		}
	}
	if took > 0 {
		return fmt.Errorf("%d of %d registries have it, the change is retried in the others: %w", took, took+len(errs), errors.Join(all...))
	}
	return errors.Join(all...)
}

// all calls do for every Registrar concurrently, and returns the number of successes and the
// errors of the others.
func (s *several) all(ctx context.Context, do func(context.Context, Registrar) error) (took int, errs map[int]error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	type outcome struct {
		member int
		err    error
	}
	outcomes := make(chan outcome, len(s.members))
	open := 0
	for i, m := range s.members {
		if r, ok := m.(Registrar); ok {
			open++
			go func() { outcomes <- outcome{i, do(ctx, r)} }()
		}
	}
	errs = make(map[int]error)
	var grace <-chan time.Time
	for open > 0 {
		select {
		case o := <-outcomes:
			open--
			if o.err != nil {
				errs[o.member] = o.err
				continue
			}
			if took++; grace == nil {
				timer := time.NewTimer(severalGrace)
				defer timer.Stop()
				grace = timer.C
			}
		case <-grace:
			cancel() // the remaining calls return now
		}
	}
	return took, errs
}

// enter returns the slot of the key, which exists until leave.
func (s *several) enter(key string) (*severalSlot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	slot := s.slots[key]
	if slot == nil {
		slot = &severalSlot{turn: make(chan struct{}, 1)}
		s.slots[key] = slot
	}
	slot.users++
	return slot, nil
}

func (s *several) leave(key string, slot *severalSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot.users--; slot.users == 0 && slot.retry == nil {
		delete(s.slots, key)
	}
}

// halt ends the background retry of the slot. The caller has its turn.
func (s *several) halt(slot *severalSlot) {
	s.mu.Lock()
	retry := slot.retry
	slot.retry = nil
	s.mu.Unlock()
	if retry != nil {
		retry.cancel()
		<-retry.done
	}
}

// keepTrying retries on the members that failed. The caller has the slot's turn.
func (s *several) keepTrying(key string, slot *severalSlot, errs map[int]error, do func(context.Context, Registrar) error) {
	ctx, cancel := context.WithCancel(s.ctx)
	retry := &severalRetry{cancel: cancel, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		cancel()
		return
	}
	slot.retry = retry
	s.wg.Go(func() {
		defer close(retry.done)
		defer cancel()
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { tryAgain(ctx, s.members[i].(Registrar), do) })
		}
		wg.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if slot.retry != retry {
			return
		}
		if slot.retry = nil; slot.users == 0 {
			delete(s.slots, key)
		}
	})
}

func tryAgain(ctx context.Context, r Registrar, do func(context.Context, Registrar) error) {
	delay := severalRetryMin
	tick := time.NewTimer(delay)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := do(ctx, r); err == nil || errors.Is(err, ErrClosed) {
			return
		}
		delay = min(2*delay, severalRetryMax)
		tick.Reset(delay)
	}
}

// Services implements Lister.
func (s *several) Services(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.ctx.Err() != nil {
		return nil, ErrClosed
	}
	names, errs := make([][]string, len(s.members)), make(map[int]error)
	var mu sync.Mutex // guards errs
	var wg sync.WaitGroup
	listers := 0
	for i, m := range s.members {
		l, ok := m.(Lister)
		if !ok {
			continue
		}
		listers++
		wg.Go(func() {
			var err error
			if names[i], err = l.Services(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs[i] = err
			}
		})
	}
	wg.Wait()
	if listers == 0 {
		return nil, errors.New("none of the registries can list services: give one that is a registry.Lister")
	}
	all := slices.Concat(names...)
	slices.Sort(all)
	return slices.Compact(all), s.describe(0, errs)
}

// Refresh implements Refresher.
func (s *several) Refresh(service string) {
	for _, m := range s.members {
		if r, ok := m.(Refresher); ok {
			r.Refresh(service)
		}
	}
}

// Close implements Registry.
func (s *several) Close() (err error) {
	s.closing.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.cancel(ErrClosed)
		s.wg.Wait()
		errs := make([]error, len(s.members))
		var wg sync.WaitGroup
		for i, m := range s.members {
			if c, ok := m.(io.Closer); ok {
				wg.Go(func() {
					if e := c.Close(); e != nil {
						errs[i] = fmt.Errorf("registry %d (%T): %w", i+1, m, e)
					}
				})
			}
		}
		wg.Wait()
		err = errors.Join(errs...)
	})
	return err
}

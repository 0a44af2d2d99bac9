package etcd

import (
	"context"
	"fmt"
	"sync"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// mirror is the common part of every reflection; T is the type of the copy. It connects the
// goroutine that reads from etcd with the one that calls the watcher. Changes that arrive while
// the watcher is busy are merged, so a slow watcher neither delays the stream nor is called for
// each step.
type mirror[T any] struct {
	registry *Registry
	what     string   // the operation, for errors
	copied   func() T // returns the copy; called with mu held
	equal    func(a, b T) bool
	wake     chan struct{} // holds a token if there is something to take

	mu      sync.Mutex // guards the fields below, and the copy
	listed  bool       // the copy is complete, as far as is known
	problem error      // not yet reported
	fatal   error
}

// change calls f, which changes the copy.
func (m *mirror[T]) change(f func()) {
	m.mu.Lock()
	f()
	m.mu.Unlock()
	upkeep.Signal(m.wake)
}

func (m *mirror[T]) failed(err error, fatal bool) {
	m.change(func() {
		m.listed, m.problem = false, err
		if fatal {
			m.fatal = err
		}
	})
}

// take returns what the watcher has not seen yet.
func (m *mirror[T]) take() (copied T, listed bool, problem, fatal error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	problem, m.problem = m.problem, nil
	if m.listed {
		copied = m.copied()
	}
	return copied, m.listed, problem, m.fatal
}

// tell calls update with the copy, at first and whenever it has changed, and trouble with the
// reason why it is not current, until ctx is done or a retry is pointless. pursue keeps the copy
// current meanwhile.
func (m *mirror[T]) tell(ctx context.Context, pursue func(context.Context), update func(T), trouble func(error)) error {
	ctx, cancel := m.registry.life.Within(ctx)
	stopped := make(chan struct{})
	defer func() { cancel(); <-stopped }()
	if !m.registry.life.Go(func() { defer close(stopped); pursue(ctx) }) {
		close(stopped)
		return registry.ErrClosed
	}
	var last T
	for current := false; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.wake:
		}
		now, listed, problem, fatal := m.take()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case fatal != nil:
			return fmt.Errorf("%s: %w", m.what, fatal)
		}
		if problem != nil {
			current = false
			if trouble != nil {
				trouble(problem)
			}
		}
		if listed && (!current || !m.equal(now, last)) {
			update(now)
			current, last = true, now
		}
	}
}

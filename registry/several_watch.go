package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// severalPatience is how long the first update waits for silent members.
const severalPatience = 3 * time.Second

// Watch implements Resolver.
func (s *several) Watch(ctx context.Context, service string, update func([]Instance), trouble func(error)) error {
	if err := CheckService(service); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(s.ctx, func() { cancel(ErrClosed) })()
	w := &severalWatch{views: make([]severalView, len(s.members)), wake: make(chan struct{}, 1)}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	for i, m := range s.members {
		wg.Go(func() {
			err := m.Watch(ctx, service,
				func(list []Instance) {
					w.note(i, func(v *severalView) {
						v.list, v.listed, v.fresh = list, true, true
						v.problem, v.news = nil, false // trouble that was not reported is over
					})
				},
				func(err error) { w.note(i, func(v *severalView) { v.problem, v.news = err, true }) })
			w.note(i, func(v *severalView) { v.problem, v.news, v.ended = err, true, true })
		})
	}
	return w.tell(ctx, s, update, trouble)
}

// severalView is the state of one member.
type severalView struct {
	list    []Instance
	listed  bool  // the member has sent a list, the last of which counts
	fresh   bool  // the list has not been taken yet
	problem error // why the list may be outdated, or nil
	news    bool  // the problem has not been reported yet
	ended   bool  // the member's Watch has returned
}

// severalWatch connects the watches of the members with the caller's.
type severalWatch struct {
	wake chan struct{} // holds a token if there is something to take

	mu    sync.Mutex // guards views
	views []severalView
}

func (w *severalWatch) note(i int, change func(*severalView)) {
	w.mu.Lock()
	change(&w.views[i])
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// tell calls the watcher until ctx is done or all members have ended.
func (w *severalWatch) tell(ctx context.Context, s *several, update func([]Instance), trouble func(error)) error {
	if trouble == nil {
		trouble = func(error) {}
	}
	patience := time.NewTimer(severalPatience)
	defer patience.Stop()
	var last []Instance
	for current, late := false, false; ; {
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-patience.C:
			late = true
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t := w.take(s, late)
		if t.over {
			return t.problem
		}
		if t.news {
			current = false
			trouble(t.problem)
		}
		if !t.listed || !t.fresh || current && Equal(t.list, last) {
			continue
		}
		update(t.list)
		current, last, late = true, t.list, true
		if t.problem != nil { // the update would mean that the trouble is over
			current = false
			trouble(t.problem)
		}
	}
}

// severalNews is what the watcher has not seen yet.
type severalNews struct {
	list    []Instance
	listed  bool // list is complete enough to report
	fresh   bool // a member has sent a list
	problem error
	news    bool // the problem has not been reported yet
	over    bool // all members have ended
}

// take returns the news. Until every member has answered it returns only problems, unless late is
// set.
func (w *severalWatch) take(s *several, late bool) severalNews {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := severalNews{over: true}
	var problems []error
	silent := false
	for i := range w.views {
		v := &w.views[i]
		n.over = n.over && v.ended
		n.listed = n.listed || v.listed
		n.fresh = n.fresh || v.fresh
		n.news = n.news || v.news
		silent = silent || !v.listed && v.problem == nil
		if v.problem != nil {
			problems = append(problems, fmt.Errorf("registry %d (%T): %w", i+1, s.members[i], v.problem))
		}
		v.news = false
	}
	n.problem = errors.Join(problems...)
	if n.listed = n.listed && (late || !silent); !n.listed {
		return n
	}
	seen := make(map[string]bool)
	n.list = []Instance{}
	for i := range w.views {
		for _, in := range w.views[i].list {
			if !seen[in.Key()] {
				seen[in.Key()] = true
				n.list = append(n.list, in)
			}
		}
		w.views[i].fresh = false
	}
	Sort(n.list)
	return n
}

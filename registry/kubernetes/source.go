package kubernetes

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// object is what a source holds: a pointer to an object of the API.
type object interface{ GetName() string }

// source keeps a copy of some objects of the API: it lists them and watches from the version of the list on.
// Whatever ends the watch makes it list again, so it sees all that happened meanwhile.
type source[T object] struct {
	client *client
	list   func(context.Context, metav1.ListOptions) (all []T, version string, err error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	opts   metav1.ListOptions
	wake   chan<- struct{}

	mu      sync.Mutex // guards what follows
	objects map[string]T
	err     error // why the objects are not current
}

// lister is what the API does with objects of one kind, of which L is a list.
type lister[L metav1.ListInterface] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// newSource returns a source of the objects that opts select. It tells wake when they may have changed.
func newSource[T any, P interface {
	*T
	object
}, L metav1.ListInterface](c *client, api lister[L], items func(L) []T, opts metav1.ListOptions, wake chan<- struct{}) *source[P] {
	return &source[P]{
		client: c, opts: opts, wake: wake, watch: api.Watch,
		list: func(ctx context.Context, opts metav1.ListOptions) ([]P, string, error) {
			l, err := api.List(ctx, opts)
			if err != nil {
				return nil, "", err
			}
			found := items(l)
			all := make([]P, len(found))
			for i := range found {
				all[i] = &found[i]
			}
			return all, l.GetResourceVersion(), nil
		},
	}
}

func (s *source[T]) follow(ctx context.Context) {
	var delay upkeep.Delay
	for ctx.Err() == nil {
		began := time.Now()
		s.once(ctx)
		if time.Since(began) > steady { // most watches end because the server likes to end them
			delay = upkeep.Delay{}
		}
		delay.Wait(ctx, nil)
	}
}

// steady is how long a watch lasts where all is well. Shorter ones are not begun again at once for ever.
const steady = 5 * time.Second

func (s *source[T]) fail(err error) {
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	upkeep.Signal(s.wake)
}

// once lists the objects, and watches from there on until that ends. They count when there is a watch: a list
// without one would be current for a moment only.
func (s *source[T]) once(ctx context.Context) {
	var all []T
	opts := s.opts
	err := s.client.attempt(ctx, listTimeout, func(ctx context.Context) (err error) {
		all, opts.ResourceVersion, err = s.list(ctx, s.opts)
		return err
	})
	if err != nil {
		s.fail(err)
		return
	}
	opts.AllowWatchBookmarks = true
	tried, t := begin(ctx)
	defer t.cancel(nil)
	w, err := s.watch(tried, opts)
	if err != nil {
		s.fail(t.explain(ctx, tried, err))
		return
	}
	defer w.Stop()
	s.mu.Lock()
	s.objects, s.err = make(map[string]T, len(all)), nil
	for _, o := range all {
		s.objects[o.GetName()] = o
	}
	s.mu.Unlock()
	upkeep.Signal(s.wake)
	s.stream(ctx, w)
}

// stream applies what changes until the watch ends. It may end with an error, such as 410 Gone when the
// version is too old by now; a new list says more than the error does.
func (s *source[T]) stream(ctx context.Context, w watch.Interface) {
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-w.ResultChan():
			if !ok || event.Type == watch.Error {
				return
			}
			if o, ok := event.Object.(T); ok {
				s.apply(event.Type, o)
			}
		}
	}
}

func (s *source[T]) apply(what watch.EventType, o T) {
	s.mu.Lock()
	switch what { // anything else is a bookmark, which carries no object
	case watch.Added, watch.Modified:
		s.objects[o.GetName()] = o
	case watch.Deleted:
		delete(s.objects, o.GetName())
	}
	s.mu.Unlock()
	upkeep.Signal(s.wake)
}

// current returns the objects, or why they are not current.
func (s *source[T]) current() (all []T, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if s.objects == nil {
		return nil, errNotListed
	}
	for _, o := range s.objects {
		all = append(all, o)
	}
	return all, nil
}

// wait returns what current does when there has been an answer. It takes tokens from wake.
func (s *source[T]) wait(ctx context.Context, wake <-chan struct{}) ([]T, error) {
	for {
		all, err := s.current()
		if !errors.Is(err, errNotListed) {
			return all, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-wake:
		}
	}
}

var errNotListed = errors.New("the API server has not answered yet")

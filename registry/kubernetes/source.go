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

// object is the type of a source's objects: a pointer to an API object.
type object interface{ GetName() string }

// source keeps a copy of some API objects: it lists them and watches from the version of the list.
// Whatever ends the watch, it then lists again, so it sees the result of every change.
type source[T object] struct {
	client *client
	list   func(context.Context, metav1.ListOptions) (all []T, version string, err error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	opts   metav1.ListOptions
	wake   chan<- struct{}

	mu      sync.Mutex // guards the fields below
	objects map[string]T
	err     error // why the objects are not current
}

// lister holds the API operations on objects of one kind; L is the list type.
type lister[L metav1.ListInterface] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// newSource returns a source of the objects selected by opts. It sends a token to wake when they
// may have changed.
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
		if time.Since(began) > steady { // most watches are ended by the server, as a matter of routine
			delay = upkeep.Delay{}
		}
		delay.Wait(ctx, nil)
	}
}

// steady is the least duration of a healthy watch. After shorter ones the next attempt is delayed.
const steady = 5 * time.Second

func (s *source[T]) fail(err error) {
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	upkeep.Signal(s.wake)
}

// once lists the objects, and watches from there until the watch ends. The list is used only once
// the watch is established: without one it would be current for a moment only.
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

// stream applies changes until the watch ends. It may end with an error, such as 410 Gone if the
// version is too old by now; the next list shows whether there is a lasting problem.
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
	switch what { // any other event is a bookmark, which carries no object
	case watch.Added, watch.Modified:
		s.objects[o.GetName()] = o
	case watch.Deleted:
		delete(s.objects, o.GetName())
	}
	s.mu.Unlock()
	upkeep.Signal(s.wake)
}

// current returns the objects, or the reason why they are not current.
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

// wait waits for the first answer and returns the result of current. It takes tokens from wake.
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

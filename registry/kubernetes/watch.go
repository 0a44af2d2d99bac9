package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// skew is how far the clocks of two machines may differ before a Lease that is new to this process
// counts as expired.
const skew = 10 * time.Second

// leases holds what a Registry knows about the Leases of others. A Lease has expired if it has not
// changed for its duration while this process watched, whatever the clocks of the two machines
// say, and if the server then confirms it: a silent watch may be one whose connection is dead.
type leases struct {
	mu   sync.Mutex // guards seen
	seen map[string]seenLease
}

type seenLease struct {
	version uint64    // of the object; watches differ in how far they have read
	at      time.Time // when that version was first seen here
	dead    bool      // it has expired
}

// alive returns the holders whose Leases have not expired, and when the next one may expire
// without a renewal. fresh restarts the observation of all Leases: they could not be renewed
// meanwhile. If asked is false and a Lease seems to have expired, sure is false: the caller must
// ask the server, and call alive again with the answer.
func (l *leases) alive(all []*coordinationv1.Lease, fresh, asked bool) (holders map[string]bool, next time.Duration, sure bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.seen == nil {
		l.seen = make(map[string]seenLease)
	}
	maps.DeleteFunc(l.seen, func(_ string, s seenLease) bool { return now.Sub(s.at) > 2*leftBehind })
	holders, next, sure = make(map[string]bool), time.Minute, true
	for _, lease := range all {
		if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
			continue
		}
		duration := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
		version, err := strconv.ParseUint(lease.ResourceVersion, 10, 64)
		if err != nil {
			continue
		}
		s, known := l.seen[lease.Name]
		if !known || version > s.version || fresh {
			s = seenLease{version: version, at: now}
			s.dead = !known && !fresh && now.Sub(lease.Spec.RenewTime.Time) > duration+skew
		}
		left := duration - now.Sub(s.at)
		if left <= 0 && !s.dead {
			s.dead = asked
			sure = sure && asked
		}
		l.seen[lease.Name] = s
		if !s.dead {
			holders[lease.Name] = true
			next = min(next, max(left, 0))
		}
	}
	return holders, next, sure
}

// Watch implements registry.Resolver. It lists the EndpointSlices of the service and watches from
// the version of the list; if one of them is Anser's, it does the same with Leases. An endpoint
// that is not ready is left out. A record that cannot be decoded is reported as trouble and left
// out, and so is a Service without the port.
func (r *Registry) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel, err := r.life.Bind(ctx)
	if err != nil {
		return err
	}
	wake := make(chan struct{}, 1)
	w := &serviceWatch{
		registry: r, service: service, wake: wake,
		slices: r.sliceSource(metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service}, wake),
		leases: r.leaseSource(wake),
	}
	if !isLabel(service) {
		w.slices.opts.LabelSelector = "anser-rpc/none" // no Service can have this name
	}
	defer func() { cancel(); w.running.Wait() }()
	w.running.Go(func() { w.slices.follow(ctx) })
	err = upkeep.Follow(ctx, wake, w.look, registry.Equal, update, trouble)
	if upkeep.IsHopeless(err) {
		return fmt.Errorf("watch service %q: %w", service, err)
	}
	return err
}

func (r *Registry) sliceSource(opts metav1.ListOptions, wake chan<- struct{}) *source[*discoveryv1.EndpointSlice] {
	items := func(l *discoveryv1.EndpointSliceList) []discoveryv1.EndpointSlice { return l.Items }
	return newSource(r.client, r.client.slices, items, opts, wake)
}

func (r *Registry) leaseSource(wake chan<- struct{}) *source[*coordinationv1.Lease] {
	items := func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items }
	return newSource(r.client, r.client.leases, items, metav1.ListOptions{LabelSelector: managedByLabel + "=" + managedBy}, wake)
}

func pointers[T any](all []T) []*T {
	p := make([]*T, len(all))
	for i := range all {
		p[i] = &all[i]
	}
	return p
}

// serviceWatch is one watch of a service.
type serviceWatch struct {
	registry *Registry
	service  string
	slices   *source[*discoveryv1.EndpointSlice]
	leases   *source[*coordinationv1.Lease]
	wake     <-chan struct{}
	running  sync.WaitGroup
	leasing  bool // leases is being watched
	lost     bool // the last read failed
	looked   bool
}

func (w *serviceWatch) look(ctx context.Context) (view upkeep.View[[]registry.Instance], err error) {
	all, held, err := w.objects(ctx)
	if err != nil {
		w.lost = true
		return view, err
	}
	known := &w.registry.leases
	holders, next, sure := known.alive(held, w.lost && w.looked, false)
	if !sure {
		began := time.Now()
		err = w.registry.client.attempt(ctx, listTimeout, func(ctx context.Context) (err error) {
			held, _, err = w.leases.list(ctx, w.leases.opts)
			return err
		})
		if err != nil {
			w.lost = true
			return view, err
		}
		// If the server took longer than that to answer, it could not be asked for renewals
		// either.
		holders, next, _ = known.alive(held, time.Since(began) > attemptTimeout, true)
	}
	w.lost, w.looked = false, true
	view.Value, view.Problem = instancesOf(w.service, w.registry.port, all, func(owner string) bool { return holders[owner] })
	view.Again = next
	return view, nil
}

// objects returns the slices of the service, and all Leases if one of the slices is Anser's: a
// client of an ordinary Service needs no permission to read Leases.
func (w *serviceWatch) objects(ctx context.Context) (all []*discoveryv1.EndpointSlice, held []*coordinationv1.Lease, err error) {
	all, err = w.slices.wait(ctx, w.wake)
	if err != nil || !w.leasing && !slices.ContainsFunc(all, isOurs) {
		return all, nil, err
	}
	if !w.leasing {
		w.leasing = true
		w.running.Go(func() { w.leases.follow(ctx) })
	}
	if held, err = w.leases.wait(ctx, w.wake); err != nil {
		return nil, nil, err
	}
	all, err = w.slices.current() // the wait may have taken the token of a change
	return all, held, err
}

// Services implements registry.Lister: the Services of the namespace that have instances,
// including those of Kubernetes. It waits for the API server until ctx is done.
func (r *Registry) Services(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	services := make(map[string][]*discoveryv1.EndpointSlice)
	var holders map[string]bool
	err := r.life.Ask(ctx, "list services", func(ctx context.Context) error {
		return r.client.attempt(ctx, listTimeout, func(ctx context.Context) error {
			clear(services)
			all, err := r.client.slices.List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName})
			if err != nil {
				return err
			}
			if slices.ContainsFunc(pointers(all.Items), isOurs) {
				held, _, err := r.leaseSource(nil).list(ctx, metav1.ListOptions{LabelSelector: managedByLabel + "=" + managedBy})
				if err != nil {
					return err
				}
				holders, _, _ = r.leases.alive(held, false, true)
			}
			for _, s := range pointers(all.Items) {
				name := s.Labels[discoveryv1.LabelServiceName]
				services[name] = append(services[name], s)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(services, func(name string, all []*discoveryv1.EndpointSlice) bool {
		list, _ := instancesOf(name, r.port, all, func(owner string) bool { return holders[owner] })
		return len(list) == 0 || registry.CheckService(name) != nil
	})
	return slices.Sorted(maps.Keys(services)), nil
}

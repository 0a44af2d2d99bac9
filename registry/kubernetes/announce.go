package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

const (
	// parallel is the number of concurrent requests.
	parallel = 16
	// leftBehind is the time without renewal after which the objects of a dead process are deleted
	// by the others, and clearEvery how often each process looks for them.
	leftBehind = time.Hour
	clearEvery = 10 * time.Minute
)

// backend writes the announcer's records. It is used by one goroutine.
type backend struct {
	registry *Registry
	renewed  time.Time // last renewal of the Lease
	cleared  time.Time
}

// Apply implements upkeep.Backend.
func (b *backend) Apply(ctx context.Context, items []upkeep.Item) ([]error, error) {
	if err := b.renew(ctx); err != nil {
		return nil, err
	}
	mine, err := b.mine(ctx)
	if err != nil {
		return nil, err
	}
	results := make([]error, len(items))
	var wg sync.WaitGroup
	var mu sync.Mutex // guards failure
	var failure error
	free := make(chan struct{}, parallel)
	for i, item := range items {
		have := mine[objectName(item.Service, item.Key)]
		if item.Want == nil && have == nil {
			continue
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			var refused error
			err := b.registry.client.attempt(ctx, attemptTimeout, func(ctx context.Context) error {
				err := b.write(ctx, item, have)
				if isRefusal(err) {
					refused, err = explain(err), nil
				}
				return err
			})
			results[i] = refused
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failure = err
			}
		})
	}
	wg.Wait()
	if failure != nil {
		return nil, failure
	}
	b.clear(ctx)
	return results, nil
}

// isRefusal reports whether an error concerns a single instance, so that the others can still be
// written.
func isRefusal(err error) bool {
	return errors.Is(err, upkeep.ErrTaken) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// renew renews the Lease, or creates it if it is missing: it is read every time, and written three
// times within its duration.
func (b *backend) renew(ctx context.Context) error {
	r := b.registry
	api := r.client.leases
	return r.client.attempt(ctx, attemptTimeout, func(ctx context.Context) error {
		lease, err := api.Get(ctx, r.owner, metav1.GetOptions{})
		now := metav1.NowMicro()
		switch {
		case apierrors.IsNotFound(err):
			_, err = api.Create(ctx, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: r.owner, Namespace: r.namespace, Labels: map[string]string{managedByLabel: managedBy}},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: &r.owner, LeaseDurationSeconds: new(int32((r.ttl + time.Second - 1) / time.Second)), AcquireTime: &now, RenewTime: &now,
				},
			}, metav1.CreateOptions{})
		case err == nil && time.Since(b.renewed) >= r.ttl/4:
			lease.Spec.RenewTime = &now
			_, err = api.Update(ctx, lease, metav1.UpdateOptions{})
		default:
			return err
		}
		if err == nil {
			b.renewed = now.Time
		}
		return err
	})
}

// mine returns the slices of this registry, by name.
func (b *backend) mine(ctx context.Context) (map[string]*discoveryv1.EndpointSlice, error) {
	r := b.registry
	mine := make(map[string]*discoveryv1.EndpointSlice)
	err := r.client.attempt(ctx, listTimeout, func(ctx context.Context) error {
		list, err := r.client.slices.List(ctx, metav1.ListOptions{LabelSelector: ownerLabel + "=" + r.owner})
		if err != nil {
			return err
		}
		for _, s := range pointers(list.Items) {
			mine[s.Name] = s
		}
		return nil
	})
	return mine, err
}

// write applies one item. have is this registry's slice under its key, or nil. The resourceVersion
// in it makes the server reject the write if the slice has changed meanwhile: then all items are
// applied again.
func (b *backend) write(ctx context.Context, item upkeep.Item, have *discoveryv1.EndpointSlice) error {
	r := b.registry
	api := r.client.slices
	if item.Want == nil {
		err := api.Delete(ctx, have.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	want, err := r.sliceOf(*item.Want)
	if err != nil {
		return apierrors.NewBadRequest(err.Error()) // checked before
	}
	if have != nil {
		if have.Annotations[recordKey] == want.Annotations[recordKey] {
			return nil
		}
		return b.replace(ctx, have, want)
	}
	_, err = api.Create(ctx, want, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if !item.Force {
		return upkeep.ErrTaken
	}
	theirs, err := api.Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return b.replace(ctx, theirs, want)
}

// replace writes want over the existing slice. The address type of a slice cannot be changed.
func (b *backend) replace(ctx context.Context, there, want *discoveryv1.EndpointSlice) error {
	api := b.registry.client.slices
	if there.AddressType == want.AddressType {
		want.ResourceVersion = there.ResourceVersion
		_, err := api.Update(ctx, want, metav1.UpdateOptions{})
		return err
	}
	err := api.Delete(ctx, there.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &there.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err = api.Create(ctx, want, metav1.CreateOptions{})
	return err
}

// clear deletes the objects of processes that died without withdrawing them. Readers have ignored
// them since long before; they only take up space, so after an error the next time is soon enough.
func (b *backend) clear(ctx context.Context) {
	if time.Since(b.cleared) < clearEvery {
		return
	}
	b.cleared = time.Now()
	r := b.registry
	_ = r.client.attempt(ctx, listTimeout, func(ctx context.Context) error {
		held, _, err := r.leaseSource(nil).list(ctx, metav1.ListOptions{LabelSelector: managedByLabel + "=" + managedBy})
		if err != nil {
			return err
		}
		for _, lease := range held {
			if lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) < leftBehind {
				continue
			}
			err := r.client.slices.DeleteCollection(ctx, metav1.DeleteOptions{},
				metav1.ListOptions{LabelSelector: ownerLabel + "=" + lease.Name})
			if err != nil {
				return err
			}
			err = r.client.leases.Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &lease.ResourceVersion}})
			if err != nil {
				return fmt.Errorf("delete lease %s: %w", lease.Name, err)
			}
		}
		return nil
	})
}

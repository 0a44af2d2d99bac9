package rpcxlayout

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// Store is the part of a registry that a Keeper uses. Keys have two parts, a service and a name.
// Its methods make one attempt; errors for which a retry is pointless are marked by
// upkeep.Hopeless.
type Store interface {
	// Put sets the value of a key, which vanishes unless it is put again in time.
	Put(ctx context.Context, service, name string, value []byte) error
	// Remove removes a key, if it is there.
	Remove(ctx context.Context, service, name string) error
	// List returns the values of a service by their names. It may return further keys.
	List(ctx context.Context, service string) (map[string][]byte, error)
	// Services returns the services that may have keys.
	Services(ctx context.Context) ([]string, error)
	// Changes calls wake when the values of a service may have changed, until ctx is done. A Store
	// that does not learn of changes returns at once.
	Changes(ctx context.Context, service string, wake func())
	// Close frees what the store holds open.
	Close() error
}

// Keeper is a registry in the rpcx layout, on a Store. All methods are safe for concurrent use.
type Keeper struct {
	store     Store
	announcer *upkeep.Announcer
	life      *upkeep.Life
	closing   sync.Once
}

// poll is how often a watch looks for changes that the store has not told.
const poll = time.Second

// NewKeeper returns a registry. every is the interval of renewals.
func NewKeeper(s Store, every time.Duration, log *slog.Logger) *Keeper {
	b := &backend{store: s, owner: rand.Text()[:10], names: make(map[[2]string]string)}
	return &Keeper{store: s, announcer: upkeep.NewAnnouncer(b, every, log), life: upkeep.NewLife()}
}

// Register implements registry.Registrar.
func (k *Keeper) Register(ctx context.Context, in registry.Instance) error {
	_, err := Encode(in, nil)
	if err == nil {
		_, err = Name(in)
	}
	if err != nil {
		return err
	}
	return k.announcer.Register(ctx, in)
}

// Deregister implements registry.Registrar.
func (k *Keeper) Deregister(ctx context.Context, in registry.Instance) error {
	return k.announcer.Deregister(ctx, in)
}

// Services implements registry.Lister.
func (k *Keeper) Services(ctx context.Context) (names []string, err error) {
	err = k.life.Ask(ctx, "list services", func(ctx context.Context) error {
		names = nil
		all, err := k.store.Services(ctx)
		if err != nil {
			return err
		}
		for _, service := range all {
			values, err := k.store.List(ctx, service)
			if err != nil {
				return err
			}
			if registry.CheckService(service) == nil && slices.ContainsFunc(keys(values), IsServer) {
				names = append(names, service)
			}
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

func keys(m map[string][]byte) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// Watch implements registry.Resolver.
func (k *Keeper) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := registry.CheckService(service); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel, err := k.life.Bind(ctx)
	if err != nil {
		return err
	}
	wake, stopped := make(chan struct{}, 1), make(chan struct{})
	if !k.life.Go(func() {
		defer close(stopped)
		k.store.Changes(ctx, service, func() { upkeep.Signal(wake) })
	}) {
		close(stopped)
	}
	defer func() { cancel(); <-stopped }()
	err = upkeep.Follow(ctx, wake, func(ctx context.Context) (upkeep.View[[]registry.Instance], error) { return k.look(ctx, service) }, registry.Equal, update, trouble)
	if upkeep.IsHopeless(err) {
		return fmt.Errorf("watch service %q: %w", service, err)
	}
	return err
}

func (k *Keeper) look(ctx context.Context, service string) (upkeep.View[[]registry.Instance], error) {
	view := upkeep.View[[]registry.Instance]{Again: poll}
	values, err := k.store.List(ctx, service)
	if err != nil {
		return view, err
	}
	for _, name := range keys(values) {
		if !IsServer(name) {
			continue // another key of rpcx's plugins
		}
		in, err := Decode(service, name, values[name], ownerKey)
		if err != nil {
			if view.Problem == nil {
				view.Problem = err
			}
			continue
		}
		view.Value = append(view.Value, in)
	}
	view.Value = Once(view.Value)
	return view, nil
}

// Close implements registry.Registry.
func (k *Keeper) Close() (err error) {
	k.closing.Do(func() {
		err = k.announcer.Close()
		k.life.End()
		if e := k.store.Close(); err == nil {
			err = e
		}
	})
	return err
}

// ownerKey is the key of metadata that says which registry has announced an instance.
const ownerKey = "anser-owner"

// backend writes the announced instances.
type backend struct {
	store Store
	owner string
	names map[[2]string]string // last part of the key by service and key of the instance
}

// Apply implements upkeep.Backend.
func (b *backend) Apply(ctx context.Context, items []upkeep.Item) ([]error, error) {
	results := make([]error, len(items))
	listed := make(map[string]map[string][]byte)
	for i, item := range items {
		values, ok := listed[item.Service]
		if !ok {
			var err error
			if values, err = b.store.List(ctx, item.Service); err != nil {
				return nil, err
			}
			listed[item.Service] = values
		}
		var err error
		if results[i], err = b.apply(ctx, item, values); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// apply writes an instance. rejected is why the registry does not take it.
func (b *backend) apply(ctx context.Context, item upkeep.Item, values map[string][]byte) (rejected, err error) {
	id := [2]string{item.Service, item.Key}
	if before, ok := b.names[id]; ok && item.Want == nil {
		if ownerOf(values[before]) == b.owner {
			err = b.store.Remove(ctx, item.Service, before)
		}
		if err == nil {
			delete(b.names, id)
		}
		return nil, err
	}
	if item.Want == nil {
		return nil, nil
	}
	name, err := Name(*item.Want)
	if err != nil {
		return upkeep.Hopeless(err), nil // checked before
	}
	if other := ownerOf(values[name]); other != "" && other != b.owner && !item.Force {
		return upkeep.ErrTaken, nil
	}
	value, err := Encode(*item.Want, url.Values{ownerKey: {b.owner}})
	if err != nil {
		return upkeep.Hopeless(err), nil // checked before
	}
	if before, ok := b.names[id]; ok && before != name && ownerOf(values[before]) == b.owner {
		if err := b.store.Remove(ctx, item.Service, before); err != nil {
			return nil, err
		}
	}
	if err := b.store.Put(ctx, item.Service, name, value); err != nil {
		return nil, err
	}
	b.names[id] = name
	return nil, nil
}

// ownerOf returns the registry that has written a value, or "" if it was rpcx.
func ownerOf(value []byte) string {
	q, err := url.ParseQuery(string(value))
	if err != nil {
		return ""
	}
	return q.Get(ownerKey)
}

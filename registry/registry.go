// Package registry defines how instances of services are announced and found, and holds the
// registries that need no server: static, memory and file. Others live in packages below this one,
// the heavy ones in modules of their own. Package registrytest is the suite that all of them pass.
//
// A registry is advice, not a dependency: a client keeps the last list it was given, so that no
// outage of a registry fails a call.
package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrClosed is what the methods of a Registry return after Close, and what Watch ends with when the
// registry is closed under it.
var ErrClosed = errors.New("the registry is closed: open another one")

// Registrar announces instances. Implementations are safe for concurrent use.
type Registrar interface {
	// Register announces the instance, or replaces what was announced under its key, and returns
	// when the registry has it. It then stays announced (leases renewed, and registered again
	// when the registry forgot it) until Deregister, Close, or until somebody else registers an
	// instance with the same key. It retries while the registry cannot be reached. ctx bounds
	// this call only; when it fails, what was announced before stays.
	Register(ctx context.Context, in Instance) error
	// Deregister takes back what this Registrar announced under the service and key of in. It is
	// not an error if there is no such record. The record of another registrar that has taken the
	// key over, as a restarted process does, stays.
	Deregister(ctx context.Context, in Instance) error
}

// Resolver finds instances. Implementations are safe for concurrent use.
type Resolver interface {
	// Watch calls update with all instances of the service, sorted by key, first as they are now
	// and then after each change, until ctx is done; it then returns ctx's error. No change is
	// missed, changes close together may be merged, and two updates in a row differ. A service
	// nobody announced has an empty list. update may keep the list but must not change it, nor
	// the tags in it: other watchers may have the same one.
	//
	// While the registry cannot be reached, or holds what cannot be read, Watch calls trouble
	// (which may be nil) with the reason, keeps trying, and makes no update. When that is over it
	// calls update, even where nothing changed: the list is current again. update and trouble run
	// on the goroutine that called Watch, so never concurrently, and never after it returned.
	//
	// Any other error is one that trying again cannot mend.
	Watch(ctx context.Context, service string, update func([]Instance), trouble func(error)) error
}

// A Lister can name the services that have instances, sorted.
type Lister interface {
	Services(ctx context.Context) ([]string, error)
}

// A Refresher is a Resolver that hears of changes late, as DNS does. A client that can reach none of the
// instances of a service calls Refresh, so that the resolver looks at once. Refresh does not block, and may
// be called often.
type Refresher interface {
	Refresh(service string)
}

// Registry is both sides, with what they hold open. Close withdraws what Register announced, ends
// all watches, waits for its own goroutines (Watch runs on its caller's), and may be called more
// than once. It does not wait long for a registry that cannot be reached: there, the leases expire.
type Registry interface {
	Registrar
	Resolver
	Lister
	Close() error
}

// List returns the instances of the service as they are now, in a slice of its own. It waits for
// the registry until ctx is done.
func List(ctx context.Context, r Resolver, service string) ([]Instance, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var list []Instance
	found := errors.New("found")
	var last error
	err := r.Watch(ctx, service, func(in []Instance) {
		if !errors.Is(context.Cause(ctx), found) {
			list = Clone(in)
			cancel(found)
		}
	}, func(e error) { last = e })
	switch {
	case errors.Is(context.Cause(ctx), found):
		return list, nil
	case last != nil:
		return nil, fmt.Errorf("list instances of %q: %w: %w", service, err, last)
	default:
		return nil, fmt.Errorf("list instances of %q: %w", service, err)
	}
}

// Sort orders instances by their keys, in place.
func Sort(in []Instance) {
	slices.SortFunc(in, func(a, b Instance) int { return strings.Compare(a.Key(), b.Key()) })
}

// Clone returns a copy of the list that shares nothing with it.
func Clone(in []Instance) []Instance {
	out := make([]Instance, len(in))
	for i := range in {
		out[i] = in[i].Clone()
	}
	return out
}

// Equal reports whether both lists hold equal instances in the same order.
func Equal(a, b []Instance) bool { return slices.EqualFunc(a, b, Instance.Equal) }

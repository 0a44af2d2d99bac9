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

// Registrar announces instances. Implementations are safe for concurrent use.
type Registrar interface {
	// Register announces the instance, or replaces what was announced under its key, and returns
	// when the registry has it. It then stays announced (leases renewed, and registered again
	// when the registry forgot it) until Deregister or Close. ctx bounds this call only.
	Register(ctx context.Context, in Instance) error
	// Deregister takes the instance with the key of in back. It is not an error if it is not there.
	Deregister(ctx context.Context, in Instance) error
}

// Resolver finds instances. Implementations are safe for concurrent use.
type Resolver interface {
	// Watch calls update with all instances of the service, sorted by key, first as they are now
	// and then after each change, until ctx is done; it then returns ctx's error. No change is
	// missed, changes close together may be merged, and update is never called concurrently. A service
	// nobody announced has an empty list. While the registry cannot be reached Watch calls
	// trouble (which may be nil) with the reason, keeps trying, and makes no update.
	// Any other error is one that trying again cannot mend.
	Watch(ctx context.Context, service string, update func([]Instance), trouble func(error)) error
}

// A Lister is a Resolver that can name the services it knows, sorted.
type Lister interface {
	Services(ctx context.Context) ([]string, error)
}

// Registry is both sides, with what they hold open. Close withdraws what Register announced, ends
// all watches, waits for its goroutines, and may be called more than once.
type Registry interface {
	Registrar
	Resolver
	Lister
	Close() error
}

// List returns the instances of the service as they are now. It waits for the registry until ctx
// is done.
func List(ctx context.Context, r Resolver, service string) ([]Instance, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var list []Instance
	found := errors.New("found")
	var last error
	err := r.Watch(ctx, service, func(in []Instance) {
		if !errors.Is(context.Cause(ctx), found) {
			list = slices.Clone(in)
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

// Package registry defines how instances of services are announced and found, and contains the
// registries that need no server: static, memory and file. Others are in packages below this one,
// those with large dependencies in modules of their own. Package registrytest is the conformance
// suite of all of them.
//
// Calls do not depend on a registry being available: a client keeps the last list it received, so
// an outage of a registry fails no call.
package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrClosed is returned by the methods of a Registry after Close, and by a Watch whose registry is
// closed.
var ErrClosed = errors.New("the registry is closed: open another one")

// Registrar announces instances. Implementations are safe for concurrent use.
type Registrar interface {
	// Register announces the instance, or replaces the one announced under its key, and returns
	// when the registry has it. The instance then stays announced (leases are renewed, and it is
	// registered again if the registry loses it) until Deregister, Close, or until another
	// Registrar registers an instance with the same key. Register retries while the registry
	// cannot be reached. ctx bounds this call only; if it fails, the previous announcement stays.
	Register(ctx context.Context, in Instance) error
	// Deregister withdraws the instance that this Registrar has announced under the service and
	// key of in. It is not an error if there is none. A record that another Registrar has
	// announced under the same key, for example after a restart, stays.
	Deregister(ctx context.Context, in Instance) error
}

// Resolver finds instances. Implementations are safe for concurrent use.
type Resolver interface {
	// Watch calls update with all instances of the service, sorted by key, first with the current
	// list and then after each change, until ctx is done; it then returns ctx's error. No change
	// is missed, changes in quick succession may be merged, and two consecutive updates differ. A
	// service without announced instances has an empty list. update may keep the list but must not
	// modify it, nor its tags: other watchers may share them.
	//
	// While the registry cannot be reached, or holds records that cannot be decoded, Watch calls
	// trouble (which may be nil) with the reason, keeps trying, and calls no update. Afterwards it
	// calls update even if nothing has changed: the list is current again. update and trouble run
	// on the goroutine that called Watch, so never concurrently, and never after it has returned.
	//
	// Any other error is permanent: a retry would fail, too.
	Watch(ctx context.Context, service string, update func([]Instance), trouble func(error)) error
}

// A Lister returns the names of the services that have instances, sorted.
type Lister interface {
	Services(ctx context.Context) ([]string, error)
}

// A Refresher is a Resolver that learns of changes late, for example by DNS. A client that can
// reach none of the instances of a service calls Refresh, which makes the resolver look up the
// service at once. Refresh does not block, and may be called often.
type Refresher interface {
	Refresh(service string)
}

// A Namer is a Resolver that finds some of the instances of a service, and names them for errors
// and logs: "arith, version 2.0". NameOf must not block.
type Namer interface {
	NameOf(service string) string
}

// Registry is both a Registrar and a Resolver, with the resources they hold open. Close withdraws
// the announced instances, ends all watches, waits for the registry's own goroutines (Watch runs
// on its caller's), and may be called more than once. It does not wait long for a registry that
// cannot be reached: there, the leases expire.
type Registry interface {
	Registrar
	Resolver
	Lister
	Close() error
}

// List returns the current instances of the service, in a slice owned by the caller. It waits for
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

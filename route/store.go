package route

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anser-rpc/anser/registry"
)

// kept is how many versions stay available: the document of a version replaces the one this many
// versions before, so that none is ever deleted.
const kept = 64

func documentName(service string) string { return "rules/" + service }

func historyName(service string, version uint64) string {
	return fmt.Sprintf("rules-history/%s/%d", service, version%kept)
}

// Load returns the rules of the service, or an empty document of version 0 if there are none.
func Load(ctx context.Context, store registry.Store, service string) (*Document, error) {
	return load(ctx, store, documentName(service))
}

var (
	errNilStore   = errors.New("the store of the rules is nil: pass a registry that keeps documents")
	errNilContext = errors.New("the context is nil: pass context.Background()")
)

func load(ctx context.Context, store registry.Store, name string) (*Document, error) {
	if store == nil {
		return nil, errNilStore
	}
	if ctx == nil {
		return nil, errNilContext
	}
	doc, err := store.Load(ctx, name)
	if err != nil {
		return nil, err
	}
	if doc.Revision == 0 {
		return new(Document), nil
	}
	d, err := Parse(doc.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.revision = doc.Revision
	return d, nil
}

// ConflictError is returned by Save if the rules are no longer at the version of the change.
type ConflictError struct {
	Service  string
	Base     uint64    // version on which the change is based
	Current  *Document // the present rules, or nil if they changed during Save
	Conflict error     // registry.ErrConflict
}

// Error implements error.
func (e *ConflictError) Error() string {
	if e.Current == nil {
		return fmt.Sprintf("the rules of %q were changed meanwhile: read them and make the change again", e.Service)
	}
	return fmt.Sprintf("the rules of %q are at version %d (by %s: %q), and the change is based on version %d: read them and make the change again",
		e.Service, e.Current.Version, cmp.Or(e.Current.Author, "an unknown author"), e.Current.Comment, e.Base)
}

// Unwrap returns registry.ErrConflict.
func (e *ConflictError) Unwrap() error { return e.Conflict }

// Save makes rules the next version for the service if base is still the present one, otherwise it
// returns a [*ConflictError]. It returns the new document.
func Save(ctx context.Context, store registry.Store, service string, base uint64, rules RuleSet, author, comment string) (*Document, error) {
	if err := rules.Validate(); err != nil {
		return nil, err
	}
	now, err := Load(ctx, store, service)
	if err != nil {
		return nil, err
	}
	return save(ctx, store, service, now, base, rules, author, comment)
}

func save(ctx context.Context, store registry.Store, service string, now *Document, base uint64, rules RuleSet, author, comment string) (*Document, error) {
	if now.Version != base {
		return nil, &ConflictError{service, base, now, registry.ErrConflict}
	}
	if now.Version > 0 { // its writer may have died before it was in the history
		if err := remember(ctx, store, service, now); err != nil {
			return nil, err
		}
	}
	next := &Document{Version: base + 1, Author: author, Time: time.Now().UTC().Truncate(time.Second), Comment: comment, Rules: rules}
	data, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return nil, err
	}
	if _, err := Parse(data); err != nil {
		return nil, err
	}
	next.revision, err = store.Save(ctx, registry.Document{Name: documentName(service), Revision: now.revision, Data: data})
	if errors.Is(err, registry.ErrConflict) {
		return nil, &ConflictError{service, base, nil, registry.ErrConflict}
	}
	if err != nil {
		return nil, err
	}
	if err := remember(ctx, store, service, next); err != nil {
		return next, fmt.Errorf("version %d is in force, but not yet in the history: %w", next.Version, err)
	}
	return next, nil
}

// remember adds a version to the history.
func remember(ctx context.Context, store registry.Store, service string, d *Document) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	name := historyName(service, d.Version)
	for {
		old, err := store.Load(ctx, name)
		if err != nil {
			return err
		}
		var there struct{ Version uint64 }
		if json.Unmarshal(old.Data, &there) == nil && there.Version == d.Version {
			return nil
		}
		_, err = store.Save(ctx, registry.Document{Name: name, Revision: old.Revision, Data: data})
		if !errors.Is(err, registry.ErrConflict) {
			return err
		}
	}
}

// History returns the available versions of the service's rules, newest first: up to 64.
func History(ctx context.Context, store registry.Store, service string) ([]*Document, error) {
	now, err := Load(ctx, store, service)
	if err != nil {
		return nil, err
	}
	if now.Version == 0 {
		return nil, nil
	}
	list := []*Document{now}
	for v := now.Version - 1; v > 0 && v+kept > now.Version; v-- {
		d, err := load(ctx, store, historyName(service, v))
		if err != nil {
			return nil, err
		}
		if d.Version == v {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *Document) int { return cmp.Compare(b.Version, a.Version) })
	return list, nil
}

// Version returns one version of the service's rules.
func Version(ctx context.Context, store registry.Store, service string, version uint64) (*Document, error) {
	now, err := Load(ctx, store, service)
	if err != nil || now.Version == version && version != 0 {
		return now, err
	}
	d, err := load(ctx, store, historyName(service, version))
	if err != nil {
		return nil, err
	}
	if d.Version != version || version == 0 || version > now.Version {
		return nil, fmt.Errorf("there is no version %d of the rules of %q: the present one is %d, and the history keeps %d", version, service, now.Version, kept)
	}
	return d, nil
}

// Rollback makes the rules of an earlier version the next one. If the rules change at the same
// time, it returns a [*ConflictError].
func Rollback(ctx context.Context, store registry.Store, service string, version uint64, author string) (*Document, error) {
	old, err := Version(ctx, store, service, version)
	if err != nil {
		return nil, err
	}
	now, err := Load(ctx, store, service)
	if err != nil {
		return nil, err
	}
	return save(ctx, store, service, now, now.Version, old.Rules, author, fmt.Sprintf("back to version %d", version))
}

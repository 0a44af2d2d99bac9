package site

import (
	"context"
	"fmt"
	"strings"

	"github.com/anser-rpc/anser/registry"
)

// first is the registry whose services the console changes. The services of the others are shown.
type first struct {
	registry.Resolver
	name  string
	owner func(service string) string // name of the registry that has a service; "" if none has
}

func (f *first) check(service string) error {
	if owner := f.owner(service); owner != "" && owner != f.name {
		return fmt.Errorf("%s is in the registry %s, and this console changes services of %s: start a console of the other one for it", service, owner, f.name)
	}
	return nil
}

// Watch implements registry.Resolver.
func (f *first) Watch(ctx context.Context, service string, update func([]registry.Instance), trouble func(error)) error {
	if err := f.check(service); err != nil {
		return err
	}
	return f.Resolver.Watch(ctx, service, update, trouble)
}

// documents are those of the first registry.
type documents struct {
	registry.Store
	first *first
}

// store returns the documents of the registry, or nil if it keeps none.
func (f *first) store() registry.Store {
	if s, ok := f.Resolver.(registry.Store); ok {
		return &documents{s, f}
	}
	return nil
}

// check returns an error for the rules of a service of another registry.
func (d *documents) check(name string) error {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 2 || !strings.HasPrefix(parts[0], "rules") {
		return nil
	}
	return d.first.check(parts[1])
}

// Load implements registry.Store.
func (d *documents) Load(ctx context.Context, name string) (registry.Document, error) {
	if err := d.check(name); err != nil {
		return registry.Document{}, err
	}
	return d.Store.Load(ctx, name)
}

// Save implements registry.Store.
func (d *documents) Save(ctx context.Context, doc registry.Document) (uint64, error) {
	if err := d.check(doc.Name); err != nil {
		return 0, err
	}
	return d.Store.Save(ctx, doc)
}

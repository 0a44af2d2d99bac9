package consul

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry"
)

// errDenied means that the token does not allow a transaction.
var errDenied = errors.New("permission denied")

// documentKey returns the key of a document in Consul's KV store.
func (c *config) documentKey(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if p == "." || p == ".." { // they have another meaning in a URL
			parts[i] = strings.ReplaceAll(p, ".", "%2E")
		}
	}
	return "anser/" + c.prefix + "documents/" + strings.Join(parts, "/")
}

func document(name string, pair *api.KVPair) registry.Document {
	if pair == nil {
		return registry.Document{Name: name}
	}
	return registry.Document{Name: name, Revision: pair.ModifyIndex, Data: pair.Value}
}

// Load implements registry.Store. It waits for Consul until ctx is done.
func (r *Registry) Load(ctx context.Context, name string) (registry.Document, error) {
	if err := registry.CheckDocument(name); err != nil {
		return registry.Document{Name: name}, err
	}
	doc, err := ask(ctx, r, func(q *api.QueryOptions) (registry.Document, error) {
		pair, _, err := r.client.KV().Get(r.documentKey(name), q)
		return document(name, pair), err
	})
	if err != nil {
		return registry.Document{Name: name}, fmt.Errorf("load document %q: %w", name, err)
	}
	return doc, nil
}

// Save implements registry.Store. It sends the document once, in a transaction, whose answer holds
// the revision.
func (r *Registry) Save(ctx context.Context, doc registry.Document) (revision uint64, err error) {
	if err := doc.Validate(); err != nil {
		return 0, err
	}
	ctx, cancel := r.life.Within(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	op := &api.TxnOp{KV: &api.KVTxnOp{Verb: api.KVCAS, Key: r.documentKey(doc.Name), Value: doc.Data, Index: doc.Revision}}
	err = r.attempt(ctx, attemptTimeout, func(q *api.QueryOptions) error {
		ok, answer, _, err := r.client.Txn().Txn(api.TxnOps{op}, q)
		switch {
		case err != nil && strings.Contains(err.Error(), "ACL not found"): // the client library returns this error without a status
			return fmt.Errorf("%w: %w", errDenied, err)
		case err != nil:
			return err
		case !ok:
			return refused(answer)
		case len(answer.Results) != 1 || answer.Results[0].KV == nil:
			return errors.New("the answer to a transaction has no result")
		}
		revision = answer.Results[0].KV.ModifyIndex
		return nil
	})
	switch {
	case errors.Is(err, registry.ErrConflict):
		return 0, registry.ErrConflict
	case err != nil:
		return 0, fmt.Errorf("save document %q: %w", doc.Name, err)
	}
	return revision, nil
}

// refused returns the reason why a transaction was rolled back.
func refused(answer *api.TxnResponse) error {
	var texts []string
	for _, e := range answer.Errors {
		texts = append(texts, e.What)
	}
	text := strings.Join(texts, "; ")
	switch {
	case strings.Contains(text, "stale"), strings.Contains(text, "not exist"):
		return registry.ErrConflict
	case strings.Contains(strings.ToLower(text), "permission denied"):
		return errDenied
	}
	return errors.New(text)
}

// Follow implements registry.Store.
func (r *Registry) Follow(ctx context.Context, name string, update func(registry.Document), trouble func(error)) error {
	if err := registry.CheckDocument(name); err != nil {
		return err
	}
	last, current := uint64(0), false
	err := r.follow(ctx, func(q *api.QueryOptions) (func(), uint64, error) {
		pair, meta, err := r.client.KV().Get(r.documentKey(name), q)
		if err != nil {
			return nil, 0, err
		}
		return func() {
			if doc := document(name, pair); !current || doc.Revision != last {
				update(doc)
				current, last = true, doc.Revision
			}
		}, meta.LastIndex, nil
	}, func(err error) {
		current = false
		if trouble != nil {
			trouble(err)
		}
	})
	if err != nil {
		return fmt.Errorf("follow document %q: %w", name, err)
	}
	return nil
}

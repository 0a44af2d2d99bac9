package etcd

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/registry"
)

// documentKey returns the key of a document, <prefix>/@documents/<name>. No service can have that
// name, so documents and instances never collide.
func (r *Registry) documentKey(name string) string { return r.prefix + "/@documents/" + name }

// documentOf returns the document of a key, empty if there is none. Its revision is the one of the
// key's last write.
func documentOf(name string, kv *mvccpb.KeyValue) registry.Document {
	if kv == nil {
		return registry.Document{Name: name}
	}
	return registry.Document{Name: name, Revision: uint64(kv.ModRevision), Data: kv.Value}
}

// Load implements registry.Store. It waits for etcd until ctx is done.
func (r *Registry) Load(ctx context.Context, name string) (registry.Document, error) {
	if err := registry.CheckDocument(name); err != nil {
		return registry.Document{}, err
	}
	ctx, cancel := r.life.Within(ctx)
	defer cancel()
	var doc registry.Document
	err := r.client.retry(ctx, func(ctx context.Context) (err error) {
		doc, _, err = r.load(ctx, name)
		return err
	})
	if err != nil {
		return registry.Document{}, fmt.Errorf("load document %q: %w", name, err)
	}
	return doc, nil
}

// load makes one request and also returns the current revision of etcd.
func (r *Registry) load(ctx context.Context, name string) (registry.Document, int64, error) {
	resp, err := r.client.kv.Get(ctx, r.documentKey(name))
	if err != nil {
		return registry.Document{}, 0, err
	}
	var kv *mvccpb.KeyValue
	if len(resp.Kvs) > 0 {
		kv = resp.Kvs[0]
	}
	return documentOf(name, kv), resp.Header.Revision, nil
}

// Save implements registry.Store. It waits for etcd until ctx is done. A request whose answer was
// lost is repeated, and a conflict after that is ignored if etcd holds the document that was
// written.
func (r *Registry) Save(ctx context.Context, doc registry.Document) (uint64, error) {
	if err := doc.Validate(); err != nil {
		return 0, err
	}
	ctx, cancel := r.life.Within(ctx)
	defer cancel()
	key, revision, inDoubt := r.documentKey(doc.Name), uint64(0), false
	err := r.client.retry(ctx, func(ctx context.Context) error {
		resp, err := r.client.kv.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", int64(doc.Revision))).
			Then(clientv3.OpPut(key, string(doc.Data))).
			Else(clientv3.OpGet(key)).Commit()
		if err != nil {
			inDoubt = true
			return err
		}
		if resp.Succeeded {
			revision = uint64(resp.Header.Revision)
			return nil
		}
		now := registry.Document{Name: doc.Name}
		if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
			now = documentOf(doc.Name, kvs[0])
		}
		revision = 0
		if inDoubt && now.Revision > doc.Revision && bytes.Equal(now.Data, doc.Data) {
			revision = now.Revision
		}
		return nil
	})
	if err == nil && revision == 0 {
		return 0, registry.ErrConflict
	}
	if err != nil {
		return 0, fmt.Errorf("save document %q: %w", doc.Name, err)
	}
	return revision, nil
}

// Follow implements registry.Store, in the same way as Watch follows instances.
func (r *Registry) Follow(ctx context.Context, name string, update func(registry.Document), trouble func(error)) error {
	if err := registry.CheckDocument(name); err != nil {
		return err
	}
	w := &documentWatch{name: name}
	w.mirror = mirror[registry.Document]{
		registry: r, what: fmt.Sprintf("follow document %q", name), copied: func() registry.Document { return w.doc },
		equal: func(a, b registry.Document) bool { return a.Revision == b.Revision }, wake: make(chan struct{}, 1),
	}
	return w.tell(ctx, func(ctx context.Context) { r.pursue(ctx, w, r.documentKey(name), "") }, update, trouble)
}

// documentWatch is a copy of a document.
type documentWatch struct {
	mirror[registry.Document]
	name string
	doc  registry.Document // guarded by mu
}

func (w *documentWatch) list(ctx context.Context) (revision int64, err error) {
	var doc registry.Document
	err = w.registry.client.attempt(ctx, func(ctx context.Context) (err error) {
		doc, revision, err = w.registry.load(ctx, w.name)
		return err
	})
	if err != nil {
		return 0, err
	}
	w.set(doc)
	return revision, nil
}

func (w *documentWatch) apply(events []*mvccpb.Event) {
	for _, e := range events {
		if e.Type == mvccpb.Event_DELETE {
			w.set(documentOf(w.name, nil))
		} else {
			w.set(documentOf(w.name, e.Kv))
		}
	}
}

func (w *documentWatch) set(doc registry.Document) {
	w.change(func() { w.doc, w.listed = doc, true })
}

package kubernetes

import (
	"context"
	"fmt"
	"strconv"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// dataKey is the key of the document in the ConfigMap's data.
const dataKey = "document"

// A document is a ConfigMap, and its revision the resourceVersion, a number that grows with every
// change, even if the object is deleted and created again: Kubernetes guarantees this since
// version 1.35, and it was so before.

// Load implements registry.Store. It waits for the API server until ctx is done.
func (r *Registry) Load(ctx context.Context, name string) (registry.Document, error) {
	if err := registry.CheckDocument(name); err != nil {
		return registry.Document{}, err
	}
	var doc registry.Document
	err := r.life.Ask(ctx, fmt.Sprintf("load document %q", name), func(ctx context.Context) error {
		var found *corev1.ConfigMap
		err := r.client.attempt(ctx, attemptTimeout, func(ctx context.Context) (err error) {
			found, err = r.client.maps.Get(ctx, objectName(name), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				found, err = nil, nil
			}
			return err
		})
		if err != nil {
			return err
		}
		if doc, err = documentOf(name, found); err != nil {
			return upkeep.Hopeless(err)
		}
		return nil
	})
	if err != nil {
		return registry.Document{}, err
	}
	return doc, nil
}

// documentOf returns the document in the ConfigMap, which may be nil.
func documentOf(name string, m *corev1.ConfigMap) (registry.Document, error) {
	doc := registry.Document{Name: name}
	if m == nil {
		return doc, nil
	}
	revision, err := revisionOf(m)
	if err != nil {
		return doc, err
	}
	if m.Annotations[documentKey] != name {
		return doc, fmt.Errorf("ConfigMap %s/%s is not the document that its name means: delete it, or set its annotation %s", m.Namespace, m.Name, documentKey)
	}
	doc.Revision, doc.Data = revision, []byte(m.Data[dataKey])
	if data, binary := m.BinaryData[dataKey]; binary {
		doc.Data = append([]byte(nil), data...)
	}
	return doc, nil
}

func revisionOf(m *corev1.ConfigMap) (uint64, error) {
	revision, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
	if err != nil || revision == 0 {
		return 0, fmt.Errorf("ConfigMap %s/%s has the version %q: want a number, as in Kubernetes", m.Namespace, m.Name, m.ResourceVersion)
	}
	return revision, nil
}

// Save implements registry.Store. It makes one attempt: after an error it is unknown whether the
// document was written.
func (r *Registry) Save(ctx context.Context, doc registry.Document) (revision uint64, err error) {
	if err := doc.Validate(); err != nil {
		return 0, err
	}
	ctx, cancel, err := r.life.Bind(ctx)
	if err != nil {
		return 0, err
	}
	defer cancel()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: objectName(doc.Name), Namespace: r.namespace,
		Labels: map[string]string{managedByLabel: managedBy}, Annotations: map[string]string{documentKey: doc.Name},
	}}
	if utf8.Valid(doc.Data) {
		m.Data = map[string]string{dataKey: string(doc.Data)}
	} else {
		m.BinaryData = map[string][]byte{dataKey: doc.Data}
	}
	api := r.client.maps
	var written *corev1.ConfigMap
	conflict := false
	err = r.client.attempt(ctx, attemptTimeout, func(ctx context.Context) (err error) {
		if doc.Revision == 0 {
			written, err = api.Create(ctx, m, metav1.CreateOptions{})
			conflict = apierrors.IsAlreadyExists(err)
		} else {
			m.ResourceVersion = strconv.FormatUint(doc.Revision, 10)
			written, err = api.Update(ctx, m, metav1.UpdateOptions{})
			conflict = apierrors.IsConflict(err) || apierrors.IsNotFound(err)
		}
		return err
	})
	if conflict {
		return 0, registry.ErrConflict
	}
	if err == nil {
		revision, err = revisionOf(written)
	}
	if err != nil {
		return 0, fmt.Errorf("save document %q: %w", doc.Name, err)
	}
	return revision, nil
}

// Follow implements registry.Store. A deleted document is an update to revision 0.
func (r *Registry) Follow(ctx context.Context, name string, update func(registry.Document), trouble func(error)) error {
	if err := registry.CheckDocument(name); err != nil {
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
	maps := newSource(r.client, r.client.maps, func(l *corev1.ConfigMapList) []corev1.ConfigMap { return l.Items },
		metav1.ListOptions{FieldSelector: "metadata.name=" + objectName(name)}, wake)
	done := make(chan struct{})
	go func() { defer close(done); maps.follow(ctx) }()
	defer func() { cancel(); <-done }()
	look := func(ctx context.Context) (upkeep.View[registry.Document], error) {
		view := upkeep.View[registry.Document]{Again: upkeep.MaxRenewal}
		found, err := maps.wait(ctx, wake)
		if err != nil {
			return view, err
		}
		var m *corev1.ConfigMap
		for _, f := range found {
			if f.Name == objectName(name) {
				m = f
			}
		}
		view.Value, err = documentOf(name, m)
		return view, err
	}
	same := func(a, b registry.Document) bool { return a.Revision == b.Revision }
	err = upkeep.Follow(ctx, wake, look, same, update, trouble)
	if upkeep.IsHopeless(err) {
		return fmt.Errorf("follow document %q: %w", name, err)
	}
	return err
}

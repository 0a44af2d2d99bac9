package registry

import (
	"context"
	"slices"
)

// memoryDocument is a document with a signal for its next revision.
type memoryDocument struct {
	Document
	changed chan struct{} // closed and replaced by a change
}

// Load implements Store. It does not block.
func (m *Memory) Load(ctx context.Context, name string) (Document, error) {
	doc, _, err := m.document(ctx, name)
	doc.Data = slices.Clone(doc.Data)
	return doc, err
}

// Save implements Store. It does not block.
func (m *Memory) Save(ctx context.Context, doc Document) (uint64, error) {
	if err := doc.Validate(); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s := m.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.isClosed() {
		return 0, ErrClosed
	}
	d := s.documentLocked(doc.Name)
	if d.Revision != doc.Revision {
		return 0, ErrConflict
	}
	d.Revision++
	d.Data = slices.Clone(doc.Data)
	close(d.changed)
	d.changed = make(chan struct{})
	return d.Revision, nil
}

// Follow implements Store. It never calls trouble.
func (m *Memory) Follow(ctx context.Context, name string, update func(Document), trouble func(error)) error {
	for last := ^uint64(0); ; {
		doc, changed, err := m.document(ctx, name)
		if err != nil {
			return err
		}
		if doc.Revision != last {
			update(doc)
			last = doc.Revision
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-m.done:
		}
	}
}

// document returns the current document; its bytes are shared by all callers.
func (m *Memory) document(ctx context.Context, name string) (Document, <-chan struct{}, error) {
	if err := CheckDocument(name); err != nil {
		return Document{}, nil, err
	}
	if err := ctx.Err(); err != nil {
		return Document{}, nil, err
	}
	s := m.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.isClosed() {
		return Document{}, nil, ErrClosed
	}
	d := s.documentLocked(name)
	return d.Document, d.changed, nil
}

// documentLocked returns the document, and creates it at revision 0 if necessary.
func (s *memoryStore) documentLocked(name string) *memoryDocument {
	d := s.documents[name]
	if d == nil {
		d = &memoryDocument{Document: Document{Name: name}, changed: make(chan struct{})}
		s.documents[name] = d
	}
	return d
}

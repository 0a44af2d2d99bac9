package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrConflict is what Save returns when the document is not at the revision that the change was made from.
var ErrConflict = errors.New("the document was changed by somebody else: load it and make the change again")

// MaxDocument is the most bytes that a document may have, so that it fits into every registry.
const MaxDocument = 256 << 10

// Document is a small text that a registry keeps beside the instances, such as the traffic rules of a service.
type Document struct {
	Name string // see CheckDocument
	// Revision grows with every change; 0 means that there is no such document. It says nothing about how
	// many changes there were.
	Revision uint64
	Data     []byte
}

// A Store keeps documents. A Registry that can implements it; ask with a type assertion. Documents stay when
// the registry is closed. Implementations are safe for concurrent use.
type Store interface {
	// Load returns the document as it is now; one that is not there has the revision 0 and no data. The
	// data belong to the caller.
	Load(ctx context.Context, name string) (Document, error)
	// Save writes the document if it is still at doc.Revision, where 0 means that it is not there yet, and
	// returns its new revision. Where it is not, the error is ErrConflict and nothing has changed. Any other
	// error leaves open whether it was written: load it to find out.
	Save(ctx context.Context, doc Document) (revision uint64, err error)
	// Follow calls update with the document as it is now and then after each change, until ctx is done; it
	// then returns ctx's error. The last change is never missed, changes close together may be merged, and
	// no update is older than the one before. update may keep the data but must not change them. What Watch
	// of a Resolver promises about trouble, goroutines and other errors holds here too.
	Follow(ctx context.Context, name string, update func(Document), trouble func(error)) error
}

// CheckDocument says what is wrong with the name of a document, or nil. A name is one to eight parts that
// are names of services (see CheckService), with slashes between them.
func CheckDocument(name string) error {
	parts := strings.Split(name, "/")
	if len(parts) > 8 {
		return fmt.Errorf("document name %q has %d parts: at most 8", name, len(parts))
	}
	for _, p := range parts {
		if CheckService(p) != nil {
			return fmt.Errorf("document name %q: use parts of letters, digits, dot, dash and underscore with / between them", name)
		}
	}
	return nil
}

// Validate says what is wrong with the document, or nil. Every implementation refuses to save one that does
// not pass.
func (d Document) Validate() error {
	if err := CheckDocument(d.Name); err != nil {
		return err
	}
	if len(d.Data) > MaxDocument {
		return fmt.Errorf("document %q has %d bytes: at most %d", d.Name, len(d.Data), MaxDocument)
	}
	return nil
}

package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrConflict is returned by Save if the document is no longer at the revision of the change.
var ErrConflict = errors.New("the document has been changed meanwhile: load it and make the change again")

// ErrTooLarge is returned by Save if the document has more than MaxDocument bytes; nothing was
// changed.
var ErrTooLarge = errors.New("the document is too large")

// MaxDocument is the maximum size of a document in bytes, so that it fits into every registry.
const MaxDocument = 256 << 10

// Document is a small text that a registry keeps in addition to the instances, such as the routing
// rules of a service.
type Document struct {
	Name string // see CheckDocument
	// Revision grows with every change; 0 means that the document does not exist. It is not the
	// number of changes.
	Revision uint64
	Data     []byte
}

// A Store keeps documents. Some Registries implement it; check with a type assertion. Documents
// stay when the registry is closed. Implementations are safe for concurrent use.
type Store interface {
	// Load returns the current document; one that does not exist has revision 0 and no data. The
	// data belong to the caller.
	Load(ctx context.Context, name string) (Document, error)
	// Save writes the document if it is still at doc.Revision, where 0 means that it must not
	// exist yet, and returns its new revision. Otherwise it returns ErrConflict and changes
	// nothing. After any other error the outcome is unknown: load the document to find out.
	Save(ctx context.Context, doc Document) (revision uint64, err error)
	// Follow calls update with the current document and then after each change, until ctx is done;
	// it then returns ctx's error. The last change is never missed, changes in quick succession
	// may be merged, and no update is older than the one before. update may keep the data but must
	// not modify them. The rules of Resolver.Watch about trouble, goroutines and other errors also
	// apply here.
	Follow(ctx context.Context, name string, update func(Document), trouble func(error)) error
}

// CheckDocument returns an error if the name of a document is invalid. A name has one to eight
// parts, each a valid name of a service (see CheckService), separated by slashes.
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

// Validate returns an error if the document is invalid. Every implementation refuses to save an
// invalid document.
func (d Document) Validate() error {
	if err := CheckDocument(d.Name); err != nil {
		return err
	}
	if len(d.Data) > MaxDocument {
		return fmt.Errorf("%w: %q has %d bytes: at most %d", ErrTooLarge, d.Name, len(d.Data), MaxDocument)
	}
	return nil
}

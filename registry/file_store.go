package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// fileDocumentHead is the first line of a document's file; the data follow.
type fileDocumentHead struct {
	Name     string `json:"name"`
	Revision uint64 `json:"revision"`
}

// maxFileDocument is larger than the file of any document.
const maxFileDocument = MaxDocument + 8<<10

// Load implements Store. Documents are files in the folder <registry file>.documents.
func (f *File) Load(ctx context.Context, name string) (Document, error) {
	doc, _, err := f.document(ctx, name)
	return doc, err
}

// Save implements Store. It waits for other processes that save a document.
func (f *File) Save(ctx context.Context, doc Document) (revision uint64, err error) {
	if err := doc.Validate(); err != nil {
		return 0, err
	}
	if _, _, err := f.current(); err != nil {
		return 0, err
	}
	path, err := f.documentPath(doc.Name)
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, fmt.Errorf("document %q cannot be written: %w", doc.Name, err)
	}
	folder, err := f.documentFolder()
	if err != nil {
		return 0, err
	}
	unlock, err := lockFile(ctx, filepath.Join(folder, "lock"))
	if err != nil {
		return 0, err
	}
	defer unlock()
	now, err := readDocument(path, doc.Name)
	if err != nil {
		return 0, err
	}
	if now.Revision != doc.Revision {
		return 0, ErrConflict
	}
	head, err := json.Marshal(fileDocumentHead{doc.Name, doc.Revision + 1})
	if err != nil {
		return 0, err
	}
	if err := replaceFile(path, append(append(head, '\n'), doc.Data...)); err != nil {
		return 0, err
	}
	f.mu.Lock()
	close(f.saved)
	f.saved = make(chan struct{})
	f.mu.Unlock()
	return doc.Revision + 1, nil
}

// Follow implements Store. It reads the file as often as Watch reads the registry's. Changes are
// detected by the revision in the file's first line, so another program that edits a document must
// raise it, too.
func (f *File) Follow(ctx context.Context, name string, update func(Document), trouble func(error)) error {
	tick := time.NewTimer(f.poll)
	defer tick.Stop()
	told := ""
	for last, current := uint64(0), false; ; {
		doc, saved, err := f.document(ctx, name)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrClosed), CheckDocument(name) != nil:
			return err
		case err != nil:
			if told != err.Error() && trouble != nil {
				trouble(err)
			}
			current, told = false, err.Error()
		case !current || doc.Revision != last:
			update(doc)
			last, current, told = doc.Revision, true, ""
		}
		tick.Reset(f.poll)
		select {
		case <-saved:
		case <-tick.C:
		case <-ctx.Done():
		case <-f.done:
		}
	}
}

// document returns the current document, and a channel that is closed when this registry saves a
// new one.
func (f *File) document(ctx context.Context, name string) (Document, <-chan struct{}, error) {
	if err := CheckDocument(name); err != nil {
		return Document{}, nil, err
	}
	if err := ctx.Err(); err != nil {
		return Document{}, nil, err
	}
	f.mu.Lock()
	closed, saved := f.closed, f.saved
	f.mu.Unlock()
	if closed {
		return Document{}, nil, ErrClosed
	}
	path, err := f.documentPath(name)
	if err != nil {
		return Document{}, saved, err
	}
	doc, err := readDocument(path, name)
	return doc, saved, err
}

// documentFolder returns the folder next to the target of the link, so that all processes that
// share the file share the documents.
func (f *File) documentFolder() (string, error) {
	path, err := filepath.EvalSymlinks(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		path = f.path
	} else if err != nil {
		return "", f.explain(err)
	}
	return path + ".documents", nil
}

// documentPath adds a suffix to every part of the name, so that "a" and "a/b" are both possible,
// and "." names no folder.
func (f *File) documentPath(name string) (string, error) {
	path, err := f.documentFolder()
	if err != nil {
		return "", err
	}
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if len(p) > 200 { // a limit of file systems, lower than that of CheckService
			sum := sha256.Sum256([]byte(p))
			p = hex.EncodeToString(sum[:])
		}
		if i == len(parts)-1 {
			path = filepath.Join(path, p+".doc")
		} else {
			path = filepath.Join(path, p+".d")
		}
	}
	return path, nil
}

// readDocument returns the document in the file, at revision 0 if there is no file.
func readDocument(path, name string) (Document, error) {
	data, err := readAtMost(path, maxFileDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return Document{Name: name}, nil
	} else if err != nil {
		return Document{}, fmt.Errorf("document %q cannot be read: %w", name, err)
	}
	first, rest, ok := bytes.Cut(data, []byte("\n"))
	var head fileDocumentHead
	if err := json.Unmarshal(first, &head); err != nil || !ok || head.Revision == 0 {
		return Document{}, fmt.Errorf("document file %s does not begin with the line {\"name\":%q,\"revision\":N}: repair or remove it", path, name)
	}
	if head.Name != name { // a file system may ignore case
		return Document{}, fmt.Errorf("document file %s holds the document %q, not %q: choose a name that differs in more than case", path, head.Name, name)
	}
	return Document{Name: name, Revision: head.Revision, Data: rest}, nil
}

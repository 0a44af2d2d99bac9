// Package document reads and writes the document of a run.
package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/anser-rpc/anser/arena/result"
)

// Read reads a file, or the standard input for -.
func Read(name string) (*result.Document, error) {
	text, err := read(name)
	if err != nil {
		return nil, err
	}
	var version struct {
		Schema *int `json:"schema"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("%s is not a document of arena run --json: %w", name, err)
	}
	switch {
	case version.Schema == nil:
		return nil, fmt.Errorf("%s is not a document of arena run --json: it has no schema", name)
	case *version.Schema > result.Schema:
		return nil, fmt.Errorf("%s has schema %d, and this arena reads up to %d: use a newer one", name, *version.Schema, result.Schema)
	}
	doc := new(result.Document)
	if err := json.Unmarshal(text, doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return doc, nil
}

func read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// Write writes a file so that a reader sees the old document or the new one, and never a part.
func Write(name string, doc *result.Document) error {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	err = errors.Join(Print(file, doc), file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Print writes the document as indented JSON.
func Print(w io.Writer, doc *result.Document) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(doc)
}

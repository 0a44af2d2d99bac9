package fbs

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/anser-rpc/anser/contract"
)

// Limits of what is read.
const (
	maxFile  = 16 << 20 // bytes
	maxFiles = 1000
)

// Loader reads files. The zero value reads those of the machine. It is not safe for concurrent use.
type Loader struct {
	// Imports are the folders in which a file is looked up that is not in the folder of the one
	// that includes it.
	Imports []string
	// ReadFile reads a file; nil means os.ReadFile. A file that does not exist is an error that
	// wraps fs.ErrNotExist.
	ReadFile func(path string) ([]byte, error)

	report
	files map[string]*File // by absolute path
	order []*File
	given map[string]bool
}

// Load reads the files and all that they include. Its error is a mistakes.List if a schema has
// mistakes. Other than with flatc,
//
//   - all files make one schema, and none of them defines what another one does;
//   - a file sees only what it defines and includes, directly or through others.
func (l *Loader) Load(paths ...string) (*Schema, error) {
	l.report, l.files, l.order, l.given = report{}, make(map[string]*File), nil, make(map[string]bool)
	for _, path := range paths {
		key, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		l.given[key] = true
	}
	for _, path := range paths {
		if _, err := l.file(path); err != nil {
			return nil, err
		}
	}
	if err := l.err(); err != nil {
		return nil, err
	}
	s := &Schema{Files: l.order}
	check(&l.report, s)
	if err := l.err(); err != nil {
		return nil, err
	}
	return s, nil
}

// Parse reads one file that includes none, whose name is for errors.
func Parse(name string, content []byte) (*Schema, error) {
	l := Loader{ReadFile: func(path string) ([]byte, error) {
		if path == name {
			return content, nil
		}
		return nil, fs.ErrNotExist
	}}
	return l.Load(name)
}

func (l *Loader) read(path string) ([]byte, error) {
	if l.ReadFile != nil {
		return l.ReadFile(path)
	}
	return os.ReadFile(path)
}

// file reads a file with its includes, unless that is done.
func (l *Loader) file(path string) (*File, error) {
	key, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if f := l.files[key]; f != nil {
		return f, nil
	}
	content, err := l.read(path)
	if err != nil {
		return nil, err
	}
	at := contract.Position{File: path, Line: 1, Column: 1}
	if len(content) > maxFile {
		l.wrong(at, "the file is larger than %d MiB", maxFile>>20)
		content = nil
	}
	f := parse(&l.report, path, content)
	f.Given = l.given[key]
	l.files[key] = f
	if len(l.files) > maxFiles {
		l.wrong(at, "the files include more than %d others", maxFiles)
		return f, nil
	}
	for _, i := range f.Includes {
		l.include(f, i)
	}
	l.order = append(l.order, f)
	return f, nil
}

// include finds the file of an include and reads it.
func (l *Loader) include(f *File, i *Include) {
	candidates := []string{filepath.Join(filepath.Dir(f.Path), filepath.FromSlash(i.Name))}
	for _, dir := range l.Imports {
		candidates = append(candidates, filepath.Join(dir, filepath.FromSlash(i.Name)))
	}
	if filepath.IsAbs(filepath.FromSlash(i.Name)) {
		candidates = []string{filepath.Clean(filepath.FromSlash(i.Name))}
	}
	for _, path := range candidates {
		included, err := l.file(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			l.wrong(i.At, "cannot read %q: %v", i.Name, err)
			return
		}
		i.File = included
		return
	}
	l.wrong(i.At, "there is no file %q in %s or the import folders: correct the name, or add its folder with -I", i.Name, filepath.Dir(f.Path))
}

// see returns the file and all that it includes.
func (f *File) see() map[*File]bool {
	seen := map[*File]bool{f: true}
	for todo := []*File{f}; len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, i := range next.Includes {
			if i.File != nil && !seen[i.File] {
				seen[i.File] = true
				todo = append(todo, i.File)
			}
		}
	}
	return seen
}

// Sees reports whether the file is other or includes it, directly or through others.
func (f *File) Sees(other *File) bool { return f.visible[other] }

// attributes returns the names of the attributes that a file may use.
func (f *File) declared() map[string]bool {
	all := maps.Clone(knownAttributes)
	for other := range f.visible {
		maps.Copy(all, other.attributes)
	}
	return all
}

// knownAttributes need no declaration.
var knownAttributes = map[string]bool{
	"deprecated": true, "required": true, "key": true, "shared": true, "hash": true, "id": true, "force_align": true,
	"bit_flags": true, "original_order": true, "nested_flatbuffer": true, "csharp_partial": true, "streaming": true,
	"idempotent": true, "cpp_type": true, "cpp_ptr_type": true, "cpp_ptr_type_get": true,
	"cpp_str_type": true, "cpp_str_flex_ctor": true, "native_inline": true, "native_custom_alloc": true,
	"native_type": true, "native_type_pack_name": true, "native_default": true, "flexbuffer": true, "private": true,
	"offset64": true, "vector64": true,
}

// Package protofile compiles .proto files in this process.
package protofile

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/protocontract"
)

// builtin has the files that can be imported from anywhere, besides google/protobuf: files of
// Google and of gRPC that APIs often import, and Anser's own options.
//
//go:embed builtin
var builtin embed.FS

// BuiltIn returns the names of the files that can be imported from anywhere, besides
// google/protobuf, in order.
func BuiltIn() (names []string) {
	// An error is not possible: all of it is in memory.
	_ = fs.WalkDir(builtin, "builtin", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, strings.TrimPrefix(name, "builtin/"))
		}
		return err
	})
	return names
}

// Set is the result of compiling files.
type Set struct {
	Names []string                            // the compiled files, as they are imported
	Files []*descriptorpb.FileDescriptorProto // they and their imports, each after its imports
}

// Error is what is wrong with the files: one line for each mistake, "file:line:column: message".
type Error struct{ Mistakes []Mistake }

// Mistake is something wrong in a file.
type Mistake struct {
	At   contract.Position
	Text string
}

// Error returns the mistakes, each on a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = m.Text
		if at := m.At.String(); at != "" {
			lines[i] = at + ": " + m.Text
		}
	}
	return strings.Join(lines, "\n")
}

// Compile compiles files. Each is named by a path of this machine and belongs to the first of the
// folders in imports that contains it; files are imported relative to these folders. Without
// imports it is the working directory. Errors about the content of files are an *Error.
func Compile(ctx context.Context, imports, files []string) (*Set, error) {
	if len(imports) == 0 {
		imports = []string{"."}
	}
	for _, dir := range imports {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("import path %s is not a folder", dir)
		}
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		name, err := ImportName(imports, file)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	s := &sources{imports: imports, read: map[string][]byte{}}
	set, err := s.compile(ctx, names)
	if err != nil {
		return nil, s.explain(err, names)
	}
	return set, nil
}

// ImportName returns the name by which the file is imported.
func ImportName(imports []string, file string) (string, error) {
	whole, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	for _, dir := range imports {
		root, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		name, err := filepath.Rel(root, whole)
		if err == nil && filepath.IsLocal(name) {
			return filepath.ToSlash(name), nil
		}
	}
	return "", fmt.Errorf("%s is in none of the import paths %s: add its folder with -I", file, strings.Join(imports, ", "))
}

// Local returns the path on this machine of the file that is imported by the name, or "".
func Local(imports []string, name string) string {
	if len(imports) == 0 {
		imports = []string{"."}
	}
	for _, dir := range imports {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// Text returns the text of the file that is imported by the name, which may be built in.
func Text(imports []string, name string) ([]byte, error) {
	if len(imports) == 0 {
		imports = []string{"."}
	}
	return (&sources{imports: imports, read: map[string][]byte{}}).open(name)
}

// sources reads the files of a compilation, each once. The compilers open several at a time.
type sources struct {
	imports []string

	mu   sync.Mutex        // guards read, and is held while a file is read
	read map[string][]byte // by name
}

// maxFile is the largest .proto file that is read.
const maxFile = 16 << 20

// open returns the text of the file that is imported by the name.
func (s *sources) open(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text, ok := s.read[name]; ok {
		return text, nil
	}
	if !fs.ValidPath(name) {
		return nil, fs.ErrNotExist
	}
	for _, dir := range s.imports {
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
		f.Close()
		if err == nil && len(text) > maxFile {
			err = fmt.Errorf("%s is larger than %d MiB", name, maxFile>>20)
		}
		if err != nil {
			return nil, err
		}
		s.read[name] = text
		return text, nil
	}
	text, err := builtin.ReadFile(path.Join("builtin", name))
	if errors.Is(err, fs.ErrNotExist) {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return text, err
}

// compile uses the compiler that knows the editions of the files.
func (s *sources) compile(ctx context.Context, names []string) (*Set, error) {
	for _, name := range names {
		if s.edition2024(name, map[string]bool{}) {
			return s.compileNew(ctx, names)
		}
	}
	return s.compileStable(ctx, names)
}

// edition2024 reports whether the file or one that it imports is written in an edition after 2023,
// which only the newer compiler knows.
func (s *sources) edition2024(name string, seen map[string]bool) bool {
	if seen[name] {
		return false
	}
	seen[name] = true
	text, err := s.open(name)
	if err != nil {
		return false
	}
	if m := editions.FindSubmatch(text); m != nil && string(m[1]) > "2023" {
		return true
	}
	for _, m := range importLines.FindAllSubmatch(text, -1) {
		if s.edition2024(string(m[1]), seen) {
			return true
		}
	}
	return false
}

// Schema returns the contract of the compiled files.
func (s *Set) Schema() (*contract.Schema, error) {
	files, err := s.Descriptors()
	if err != nil {
		return nil, err
	}
	return protocontract.FromFiles(files...), nil
}

// Descriptors returns the descriptors of the compiled files, without those of their imports.
func (s *Set) Descriptors() ([]protoreflect.FileDescriptor, error) {
	all, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: s.Files})
	if err != nil {
		return nil, err
	}
	files := make([]protoreflect.FileDescriptor, len(s.Names))
	for i, name := range s.Names {
		if files[i], err = all.FindFileByPath(name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// settle gives options that a compiler left in another form the one of the encoded file, so that
// all files look as if protoc had sent them.
func settle(f *descriptorpb.FileDescriptorProto) (*descriptorpb.FileDescriptorProto, error) {
	data, err := proto.Marshal(f)
	if err != nil {
		return nil, err
	}
	out := new(descriptorpb.FileDescriptorProto)
	return out, proto.Unmarshal(data, out)
}

package protofile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/experimental/fdp"
	"github.com/bufbuild/protocompile/experimental/incremental"
	"github.com/bufbuild/protocompile/experimental/incremental/queries"
	"github.com/bufbuild/protocompile/experimental/ir"
	"github.com/bufbuild/protocompile/experimental/report"
	"github.com/bufbuild/protocompile/experimental/source"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"github.com/bufbuild/protocompile/reporter"
	"github.com/bufbuild/protocompile/wellknownimports"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/anser-rpc/anser/contract"
)

var (
	editions    = regexp.MustCompile(`(?m)^\s*edition\s*=\s*["'](\d{4})["']`)
	importLines = regexp.MustCompile(`(?m)^\s*import\s+(?:public\s+|weak\s+|option\s+)?["']([^"']+)["']`)
)

// mostMistakes is the number of mistakes after which compiling ends.
const mostMistakes = 20

// compileStable compiles files of proto2, proto3 and edition 2023.
func (s *sources) compileStable(ctx context.Context, names []string) (*Set, error) {
	found := new(Error)
	compiler := protocompile.Compiler{
		Resolver: wellknownimports.WithStandardImports(&protocompile.SourceResolver{Accessor: func(name string) (io.ReadCloser, error) {
			text, err := s.open(name)
			if err != nil {
				return nil, err
			}
			return io.NopCloser(bytes.NewReader(text)), nil
		}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
		Reporter: reporter.NewReporter(func(err reporter.ErrorWithPos) error {
			found.add(err)
			if len(found.Mistakes) == mostMistakes {
				return err
			}
			return nil
		}, nil),
	}
	files, err := compiler.Compile(ctx, names...)
	var positioned reporter.ErrorWithPos
	if errors.As(err, &positioned) && len(found.Mistakes) == 0 { // of an import, which are not reported
		found.add(positioned)
	}
	if len(found.Mistakes) > 0 {
		return nil, found
	}
	if err != nil {
		return nil, err
	}
	set := &Set{Names: names}
	seen := make(map[string]bool)
	for _, f := range files {
		if err := set.add(f, seen); err != nil {
			return nil, err
		}
	}
	return set, nil
}

func (e *Error) add(err reporter.ErrorWithPos) {
	at := err.GetPosition()
	e.Mistakes = append(e.Mistakes, Mistake{contract.Position{File: at.Filename, Line: at.Line, Column: at.Col}, err.Unwrap().Error()})
}

// add appends the file after its imports.
func (s *Set) add(f protoreflect.FileDescriptor, seen map[string]bool) error {
	if seen[f.Path()] {
		return nil
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		in := f.Imports().Get(i).FileDescriptor
		if result, ok := f.(linker.File); ok {
			if file := result.FindImportByPath(in.Path()); file != nil {
				in = file
			}
		}
		if err := s.add(in, seen); err != nil {
			return err
		}
	}
	d, err := settle(protoutil.ProtoFromFileDescriptor(f))
	if err != nil {
		return err
	}
	s.Files = append(s.Files, d)
	return nil
}

// opener gives the files to the newer compiler.
type opener struct{ *sources }

func (o opener) Open(name string) (*source.File, error) {
	text, err := o.sources.open(name)
	if err != nil {
		return nil, err
	}
	return source.NewFile(name, string(text)), nil
}

// compileNew compiles files of any edition, with a compiler that is still called experimental.
func (s *sources) compileNew(ctx context.Context, names []string) (*Set, error) {
	options := new(fdp.Options).Apply(fdp.IncludeSourceCodeInfo(true))
	results, all, err := incremental.Run(ctx, incremental.New(), queries.FDS{
		Opener:    &source.Openers{opener{s}, source.WKTs()},
		Session:   new(ir.Session),
		Workspace: source.NewWorkspace(names...),
		Options:   *options,
	})
	if err != nil {
		return nil, err
	}
	found := new(Error)
	for i := range all.Diagnostics {
		d := &all.Diagnostics[i]
		if d.Level() > report.Error || len(found.Mistakes) == mostMistakes {
			continue
		}
		m := Mistake{contract.Position{File: d.File()}, d.Message()}
		if at := d.Primary(); !at.IsZero() {
			start := at.StartLoc()
			m.At.Line, m.At.Column = start.Line, start.Column
		}
		for _, help := range d.Help() {
			m.Text += "; " + help
		}
		found.Mistakes = append(found.Mistakes, m)
	}
	if len(found.Mistakes) > 0 {
		return nil, found
	}
	if results[0].Fatal != nil {
		return nil, results[0].Fatal
	}
	set := &Set{Names: names}
	for _, f := range results[0].Value.GetFile() {
		d, err := settle(f)
		if err != nil {
			return nil, err
		}
		set.Files = append(set.Files, d)
	}
	return set, nil
}

// explain adds what to do to the errors about imports, and names files as the user did.
func (s *sources) explain(err error, names []string) error {
	var found *Error
	if !errors.As(err, &found) {
		return err
	}
	for i := range found.Mistakes {
		m := &found.Mistakes[i]
		if text := s.twoNames(m, names); text != "" {
			m.Text = text
		}
		if name := s.missingImport(m); name != "" {
			m.Text = fmt.Sprintf("import %q is in none of the import paths %s", name, strings.Join(s.imports, ", "))
			if dir := s.nearby(m.At.File, name); dir != "" {
				m.Text += fmt.Sprintf(": add -I %s", dir)
			} else {
				m.Text += ": add the folder that it is relative to with -I"
			}
		}
		m.At.File = s.local(m.At.File)
	}
	return found
}

var definedAt = regexp.MustCompile(`already defined at (\S+?):\d+:\d+`)

// twoNames explains a mistake that comes from a file with two names, in two of the import paths. It
// returns "" for other mistakes.
func (s *sources) twoNames(m *Mistake, names []string) string {
	found := definedAt.FindStringSubmatch(m.Text)
	if found == nil || found[1] == m.At.File || s.local(found[1]) == "" {
		return ""
	}
	a, errA := os.Stat(s.local(found[1]))
	b, errB := os.Stat(s.local(m.At.File))
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		return ""
	}
	one, other := found[1], m.At.File
	if slices.Contains(names, one) {
		one, other = other, one
	}
	return fmt.Sprintf("%s is imported as %s and as %s: leave out one of the import paths with -I, or import it by one name", s.local(other), one, other)
}

// local is Local with the name itself for files that are built in.
func (s *sources) local(name string) string { return cmp.Or(Local(s.imports, name), name) }

var noSuchFile = regexp.MustCompile(`open (\S+): file does not exist$`)

// missingImport returns the name of the import that the mistake or its line is about, if no such
// file exists.
func (s *sources) missingImport(m *Mistake) string {
	if found := noSuchFile.FindStringSubmatch(m.Text); found != nil {
		return found[1]
	}
	lines := bytes.Split(s.read[m.At.File], []byte("\n"))
	if m.At.Line < 1 || m.At.Line > len(lines) {
		return ""
	}
	found := importLines.FindSubmatch(lines[m.At.Line-1])
	if found == nil {
		return ""
	}
	name := string(found[1])
	if _, err := s.open(name); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if _, err := fs.Stat(wellknownimports.FS(), name); err == nil {
		return ""
	}
	return name
}

// nearby returns a folder above the importing file that has the imported one, or "".
func (s *sources) nearby(from, name string) string {
	for dir := filepath.Dir(s.local(from)); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

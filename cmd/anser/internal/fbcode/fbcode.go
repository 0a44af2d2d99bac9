// Package fbcode writes the Go code of FlatBuffers' messages: what flatc 25.12 writes with --go and
// --gen-object-api, so that programs that use its code need no change, and what Anser's codec needs
// to know about the types. Other than with flatc,
//
//   - all namespaces of a file are one Go package, that of the folder, in one file;
//   - names that would occur twice in Go are mistakes with a place;
//   - parameters have other names where flatc's would not compile;
//   - comments are Go's.
//
// What flatc refuses for Go is refused: arrays of fixed length, unions of structs or strings,
// vectors of unions, unions with a type of their numbers, defaults of strings and vectors, and
// 64-bit offsets.
package fbcode

import (
	"errors"
	"fmt"
	"go/format"
	"go/types"
	"path"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
	"github.com/anser-rpc/anser/contract"
)

// Package is a Go package.
type Package struct{ Path, Name string }

// Options say where the code goes.
type Options struct {
	Header  string // the lines before the package clause
	Package Package
	Of      func(*fbs.File) (Package, error) // the package of another file's code
	Stem    string                           // what the names of variables for the file begin with
	Bare    bool                             // leave out what flatc does not write
}

// Names are the names that Go code declares at the top of its package, with the definitions that
// they come from.
type Names map[string]contract.Position

// Messages returns the Go code of the tables, structs, enums and unions of a file. It adds what it
// declares to names, which holds what other files of the package declare.
func Messages(f *fbs.File, names Names, o Options) ([]byte, error) {
	w := &writer{file: f, options: o, names: names, members: make(map[string]contract.Position), imports: make(map[string]string)}
	w.reported = map[contract.Position]bool{{}: true}
	for _, e := range f.Enums {
		w.enum(e)
	}
	for _, t := range f.Objects {
		w.object(t)
	}
	if !o.Bare {
		w.schema()
	}
	if err := errors.Join(w.mistakes...); err != nil {
		return nil, err
	}
	code, err := format.Source([]byte(o.Header + "package " + o.Package.Name + "\n\n" + w.importClause() + w.code.String()))
	if err != nil {
		return nil, fmt.Errorf("%s: the generated code is wrong: %w", f.Path, err)
	}
	return code, nil
}

// Uses returns the files other than f whose types its messages and services refer to.
func Uses(f *fbs.File) []*fbs.File {
	var all []*fbs.File
	add := func(d *fbs.Definition) {
		if d.File != f && !slices.Contains(all, d.File) {
			all = append(all, d.File)
		}
	}
	use := func(t fbs.Type) {
		if t.Object != nil {
			add(&t.Object.Definition)
		}
		if t.Enum != nil {
			add(&t.Enum.Definition)
		}
	}
	for _, o := range f.Objects {
		for _, field := range o.Fields {
			use(field.Type)
		}
	}
	for _, e := range f.Enums {
		for _, v := range e.Values {
			use(v.Type)
		}
	}
	for _, s := range f.Services {
		for _, m := range s.Methods {
			add(&m.Request.Definition)
			add(&m.Reply.Definition)
		}
	}
	return all
}

// writer writes the code of a file.
type writer struct {
	file     *fbs.File
	options  Options
	names    Names
	members  map[string]contract.Position // fields and methods, with their types
	imports  map[string]string            // names by path
	code     strings.Builder
	reported map[contract.Position]bool
	mistakes []error
}

// wrong reports a mistake, the first one of each place.
func (w *writer) wrong(at contract.Position, text string, args ...any) {
	if w.reported[at] {
		return
	}
	w.reported[at] = true
	w.mistakes = append(w.mistakes, fmt.Errorf("%v: %s", at, fmt.Sprintf(text, args...)))
}

// f writes formatted code.
func (w *writer) f(text string, args ...any) { fmt.Fprintf(&w.code, text, args...) }

func (w *writer) doc(lines []string) {
	if text := fbs.Text(lines); text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			w.f("%s\n", strings.TrimRight("// "+line, " "))
		}
	}
}

// declare reports a name that the package has already.
func (w *writer) declare(name string, at contract.Position) {
	if before, taken := w.names[name]; taken {
		w.wrong(at, "the Go name %s is that of the definition at %v, too: rename one of them", name, before)
	}
	w.names[name] = at
}

// member reports a field or method that its type has already.
func (w *writer) member(of, name string, at contract.Position) {
	key := of + "." + name
	if before, taken := w.members[key]; taken {
		if before == (contract.Position{}) {
			w.wrong(at, "the Go name %s of %s is that of a generated method: rename the field", name, of)
		} else {
			w.wrong(at, "the Go name %s of %s is that of the definition at %v, too: rename one of them", name, of, before)
		}
	}
	w.members[key] = at
}

// goType declares a type, and the methods that it has whatever its fields are.
func (w *writer) goType(name string, at contract.Position, methods ...string) {
	if types.Universe.Lookup(name) != nil || reserved[name] || locals[name] {
		w.wrong(at, "%s means something else in Go code: use another name", name)
	}
	w.declare(name, at)
	for _, m := range methods {
		w.member(name, m, contract.Position{})
	}
}

// use returns the name by which a package is imported.
func (w *writer) use(p Package) string {
	if name := w.imports[p.Path]; name != "" {
		return name
	}
	name := p.Name
	for n := 2; ; n++ {
		taken := reserved[name] && w.standard(name) != p.Path || w.names[name] != contract.Position{}
		for _, other := range w.imports {
			taken = taken || other == name
		}
		if !taken {
			break
		}
		name = fmt.Sprintf("%s%d", p.Name, n)
	}
	w.imports[p.Path] = name
	return name
}

// The packages that the code imports by these names.
const (
	runtimePackage = "github.com/google/flatbuffers/go"
	codecPackage   = "github.com/anser-rpc/anser/codec"
	anserPackage   = "github.com/anser-rpc/anser/codec/flatbuffers"
)

func (*writer) standard(name string) string {
	return map[string]string{
		"flatbuffers": runtimePackage, "codec": codecPackage, "fbcodec": anserPackage, "bytes": "bytes", "math": "math", "strconv": "strconv",
	}[name]
}

// need imports a package that has a name of its own in the code.
func (w *writer) need(name string) { w.imports[w.standard(name)] = name }

func (w *writer) importClause() string {
	if len(w.imports) == 0 {
		return ""
	}
	var groups [2]strings.Builder
	for p, name := range sorted(w.imports) {
		group := 0
		if strings.Contains(p, ".") {
			group = 1
		}
		if path.Base(p) == name {
			name = ""
		}
		fmt.Fprintf(&groups[group], "%s %q\n", name, p)
	}
	return "import (\n" + groups[0].String() + "\n" + groups[1].String() + ")\n\n"
}

// ref returns the name of a type with its package.
func (w *writer) ref(d *fbs.Definition, name string) string {
	if d.File == w.file {
		return name
	}
	p, err := w.options.Of(d.File)
	if err != nil {
		if !slices.ContainsFunc(w.mistakes, func(e error) bool { return e.Error() == err.Error() }) {
			w.mistakes = append(w.mistakes, err)
		}
		return name
	}
	if p.Path == w.options.Package.Path {
		return name
	}
	return w.use(p) + "." + name
}

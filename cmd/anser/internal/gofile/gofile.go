// Package gofile reads contracts that are written in Go: interfaces with the comment
// "//anser:service".
package gofile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// File is a Go file with contracts.
type File struct {
	Path     string // of this machine
	Package  *types.Package
	Services []*Service

	fset *token.FileSet
}

// Position returns where the object is declared.
func (f *File) Position(o types.Object) token.Position { return f.fset.Position(o.Pos()) }

// Service is an interface that is a contract.
type Service struct {
	Name       string // on the wire: that of the interface, or what the comment says
	Go         string // of the interface
	Doc        string
	Deprecated bool
	At         token.Position
	Methods    []*Method
}

// Method is a method of the interface.
type Method struct {
	Name       string
	Doc        string
	Deprecated bool
	At         token.Position
	Kind       Kind
	Idempotent bool
	// In and Out are the types of the messages, without pointers. A oneway method has no Out, and a
	// tuple has neither.
	In, Out types.Type
	// Args and Results are those of a tuple, without the context and the error.
	Args, Results []*types.Var
}

// Kind is how a method is called.
type Kind int

// The kinds, with the methods that have them.
const (
	Call         Kind = iota // func(ctx, in *In) (*Out, error)
	Filled                   // func(ctx, in *In, out *Out) error
	Tuple                    // func(ctx, a A, b B) (C, D, error)
	Oneway                   // func(ctx, in *In) error, with the comment //anser:oneway
	ServerStream             // func(ctx, in *In, out anser.Sender[Out]) error
	ClientStream             // func(ctx, in anser.Receiver[In]) (*Out, error)
	BothStream               // func(ctx, st *anser.Stream[Out, In]) error
)

// The comments that are read.
const (
	serviceComment    = "//anser:service"
	onewayComment     = "//anser:oneway"
	idempotentComment = "//anser:idempotent"
)

// Mistake is something wrong in a contract, with its place.
type Mistake struct {
	At   token.Position
	Text string
}

func (m *Mistake) Error() string { return fmt.Sprintf("%v: %s", m.At, m.Text) }

// Load reads the contracts in files, which may be in different packages. The packages need not
// compile: the generated code may be missing. But the types that a contract uses must
// be there.
func Load(ctx context.Context, files []string) ([]*File, error) {
	fset := token.NewFileSet()
	var patterns []string
	for _, file := range files {
		dir := "./" + filepath.ToSlash(filepath.Dir(file))
		if filepath.IsAbs(file) {
			dir = filepath.Dir(file)
		}
		if !slices.Contains(patterns, dir) {
			patterns = append(patterns, dir)
		}
	}
	var out []*File
	var mistakes []error
	for _, pattern := range patterns {
		made, err := loadFolder(ctx, fset, pattern, files)
		out = append(out, made...)
		mistakes = append(mistakes, err)
	}
	return out, errors.Join(mistakes...)
}

// loadFolder reads the contracts of one package.
func loadFolder(ctx context.Context, fset *token.FileSet, dir string, files []string) ([]*File, error) {
	found, err := packages.Load(&packages.Config{
		Context: ctx, Fset: fset, Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile,
	}, ".")
	if err != nil {
		return nil, err
	}
	var out []*File
	var mistakes []error
	for _, p := range found {
		places := make(map[string]bool) // the go command and the parser say the same
		for _, e := range p.Errors {
			place := filepath.Base(e.Pos)
			// The package may not compile, which the compiler says after a line with its name.
			if e.Kind != packages.TypeError && !strings.HasPrefix(e.Msg, "# ") && !(e.Pos != "" && places[place]) {
				mistakes = append(mistakes, e)
				places[place] = true
			}
		}
		for _, syntax := range p.Syntax {
			path := named(files, fset.Position(syntax.FileStart).Filename)
			if path == "" {
				continue
			}
			r := &reader{pkg: p, fset: fset}
			f := &File{Path: path, Package: p.Types, fset: fset, Services: r.file(syntax)}
			mistakes = append(mistakes, r.mistakes...)
			if len(f.Services) > 0 {
				out = append(out, f)
			}
		}
	}
	return out, errors.Join(mistakes...)
}

// named returns the file of the list that is the one at the absolute path, or "".
func named(files []string, path string) string {
	for _, file := range files {
		if whole, err := filepath.Abs(file); err == nil && whole == path {
			return file
		}
	}
	return ""
}

// reader reads the contracts of a file.
type reader struct {
	pkg      *packages.Package
	fset     *token.FileSet
	mistakes []error
}

func (r *reader) wrong(at token.Pos, format string, args ...any) {
	position := r.fset.Position(at)
	if rel, err := filepath.Rel(workingDirectory(), position.Filename); err == nil && filepath.IsLocal(rel) {
		position.Filename = rel
	}
	r.mistakes = append(r.mistakes, &Mistake{position, fmt.Sprintf(format, args...)})
}

func workingDirectory() string {
	dir, err := filepath.Abs(".")
	if err != nil {
		return ""
	}
	return dir
}

func (r *reader) file(syntax *ast.File) []*Service {
	var services []*Service
	for _, d := range syntax.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.TYPE {
			continue
		}
		for _, spec := range decl.Specs {
			spec := spec.(*ast.TypeSpec)
			doc := spec.Doc
			if doc == nil && len(decl.Specs) == 1 {
				doc = decl.Doc
			}
			if name, marked := directive(doc, serviceComment); marked {
				if s := r.service(spec, doc, name); s != nil {
					services = append(services, s)
				}
			}
		}
	}
	return services
}

// directive returns what follows the comment in the line that begins with it.
func directive(doc *ast.CommentGroup, comment string) (rest string, found bool) {
	if doc == nil {
		return "", false
	}
	for _, c := range doc.List {
		if c.Text == comment {
			return "", true
		}
		if rest, ok := strings.CutPrefix(c.Text, comment+" "); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// text returns the comment without the directives.
func text(doc *ast.CommentGroup) string { return strings.TrimSpace(doc.Text()) }

func deprecated(doc string) bool {
	return strings.HasPrefix(doc, "Deprecated:") || strings.Contains(doc, "\n\nDeprecated:")
}

func (r *reader) service(spec *ast.TypeSpec, doc *ast.CommentGroup, name string) *Service {
	object := r.pkg.TypesInfo.Defs[spec.Name]
	contract, ok := spec.Type.(*ast.InterfaceType)
	switch {
	case !ok || object == nil:
		r.wrong(spec.Pos(), "%s is not an interface: put %s above the interface of the service", spec.Name, serviceComment)
		return nil
	case spec.TypeParams != nil:
		r.wrong(spec.Pos(), "interface %s has type parameters: a service has none", spec.Name)
		return nil
	case !spec.Name.IsExported():
		r.wrong(spec.Pos(), "interface %s is not exported: its clients and servers are", spec.Name)
		return nil
	}
	s := &Service{Name: cmp.Or(name, spec.Name.Name), Go: spec.Name.Name, Doc: text(doc), At: r.fset.Position(spec.Pos())}
	s.Deprecated = deprecated(s.Doc)
	docs := make(map[string]*ast.CommentGroup)
	for _, f := range contract.Methods.List {
		for _, n := range f.Names {
			docs[n.Name] = f.Doc
		}
	}
	all := object.Type().Underlying().(*types.Interface)
	if !all.IsMethodSet() {
		r.wrong(spec.Pos(), "interface %s is a constraint: a service has methods alone", spec.Name)
		return nil
	}
	var methods []*types.Func
	for m := range all.Methods() {
		methods = append(methods, m)
	}
	slices.SortStableFunc(methods, func(a, b *types.Func) int {
		return cmp.Or(strings.Compare(r.fset.Position(a.Pos()).Filename, r.fset.Position(b.Pos()).Filename), cmp.Compare(a.Pos(), b.Pos()))
	})
	if len(methods) == 0 {
		r.wrong(spec.Pos(), "interface %s has no methods", spec.Name)
	}
	for _, f := range methods {
		if m := r.method(s, f, docs[f.Name()]); m != nil {
			s.Methods = append(s.Methods, m)
		}
	}
	return s
}

package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageHasADoc(t *testing.T) {
	for _, s := range sources(t) {
		if !slices.ContainsFunc(s.files, func(f *ast.File) bool { return f.Doc.Text() != "" }) {
			t.Errorf("package %s has no package comment: say what it provides", s.path)
		}
	}
}

func TestEveryExportedNameOfTheCoreHasADoc(t *testing.T) {
	for _, s := range sources(t) {
		if !s.core || s.program() {
			continue
		}
		for _, f := range s.files {
			if ast.IsGenerated(f) {
				continue
			}
			for _, name := range undocumented(f) {
				t.Errorf("%s: %s.%s has no doc comment", s.fset.Position(name.Pos()), s.path, name.Name)
			}
		}
	}
}

// undocumented returns the exported names of a file without a comment: functions, methods of
// exported types, types, and constants and variables, for which a comment on their group or on
// their line suffices.
func undocumented(f *ast.File) []*ast.Ident {
	var names []*ast.Ident
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc.Text() == "" && d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
				names = append(names, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				names = append(names, undocumentedSpec(d, spec)...)
			}
		}
	}
	return names
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		// The comment of a group does not suffice for a type.
		alone := !d.Lparen.IsValid() && d.Doc.Text() != ""
		if spec.Name.IsExported() && !alone && spec.Doc.Text() == "" {
			return []*ast.Ident{spec.Name}
		}
	case *ast.ValueSpec:
		if d.Doc.Text()+spec.Doc.Text()+spec.Comment.Text() == "" {
			return slices.DeleteFunc(slices.Clone(spec.Names), func(n *ast.Ident) bool { return !n.IsExported() })
		}
	}
	return nil
}

func exportedReceiver(receiver *ast.FieldList) bool {
	if len(receiver.List) == 0 {
		return false
	}
	for x := receiver.List[0].Type; ; {
		switch t := x.(type) {
		case *ast.StarExpr:
			x = t.X
		case *ast.IndexExpr:
			x = t.X
		case *ast.IndexListExpr:
			x = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

func TestUndocumented(t *testing.T) {
	const code = `package p

func Bare() {}

// Told does.
func Told() {}

func (hidden) Method() {}
func (*Shown[T]) Method2() {}

type hidden struct{}

// Shown is.
type Shown[T any] struct{}

type Bare2 int

// Both of them.
type (
	Bare3 int
	// Told3 is.
	Told3 int
)

const Bare4, bare4 = 1, 2

// The numbers.
const (
	One = 1
	Two = 2
)

var (
	Bare5 int
	Told5 int // has a comment on its line
)
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", code, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range undocumented(f) {
		got = append(got, name.Name)
	}
	if want := "Bare Method2 Bare2 Bare3 Bare4 Bare5"; strings.Join(got, " ") != want {
		t.Errorf("undocumented are %q: want %q", got, want)
	}
}

package netrpc_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Every exported name of net/rpc and net/rpc/jsonrpc exists here, and every function and method
// has the same signature.
func TestAPIIsThatOfNetRPC(t *testing.T) {
	root := goroot(t)
	for ours, theirs := range map[string]string{".": "net/rpc", "jsonrpc": "net/rpc/jsonrpc"} {
		want, got := exported(t, filepath.Join(root, "src", filepath.FromSlash(theirs))), exported(t, ours)
		if len(want) == 0 {
			t.Fatalf("%s has no exported names", theirs)
		}
		for name, signature := range want {
			have, ok := got[name]
			if !ok {
				t.Errorf("%s.%s is missing", theirs, name)
			} else if have != signature {
				t.Errorf("%s.%s is %s: want %s", theirs, name, have, signature)
			}
		}
	}
}

// exported returns the exported names of a package; for functions and methods with their
// signatures, for others with "".
func exported(t *testing.T, dir string) map[string]string {
	t.Helper()
	names := make(map[string]string)
	noTests := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	fset := token.NewFileSet()
	//lint:ignore SA1019 no build tags and no types are needed to compare texts
	packages, err := parser.ParseDir(fset, dir, noTests, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		for _, f := range p.Files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					name := d.Name.Name
					if d.Recv != nil {
						receiver := text(fset, d.Recv.List[0].Type)
						if !ast.IsExported(strings.TrimPrefix(receiver, "*")) {
							continue
						}
						name = receiver + "." + name
					}
					if d.Name.IsExported() {
						names[name] = signature(fset, d.Type)
					}
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						switch spec := spec.(type) {
						case *ast.TypeSpec:
							names[spec.Name.Name] = ""
						case *ast.ValueSpec:
							for _, n := range spec.Names {
								names[n.Name] = ""
							}
						}
					}
				}
			}
		}
	}
	for name := range names {
		if !ast.IsExported(strings.TrimPrefix(name, "*")) {
			delete(names, name)
		}
	}
	// The type is net/rpc's own here, including its method.
	delete(names, "ServerError.Error")
	return names
}

// signature returns the types of a function without the names of its parameters.
func signature(fset *token.FileSet, f *ast.FuncType) string {
	var b strings.Builder
	for _, list := range []*ast.FieldList{f.Params, f.Results} {
		b.WriteByte('(')
		if list != nil {
			for _, field := range list.List {
				for range max(len(field.Names), 1) {
					b.WriteString(strings.NewReplacer("netrpc.", "", "rpc.", "").Replace(text(fset, field.Type)) + ",")
				}
			}
		}
		b.WriteByte(')')
	}
	return b.String()
}

func text(fset *token.FileSet, node any) string {
	var b bytes.Buffer
	printer.Fprint(&b, fset, node)
	return b.String()
}

package fbcode_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/fbcode"
	"github.com/anser-rpc/anser/cmd/anser/internal/fbs"
)

// packageOf puts each file into a package of its own.
func packageOf(f *fbs.File) (fbcode.Package, error) {
	name := strings.TrimSuffix(f.Path[strings.LastIndexByte(f.Path, '/')+1:], ".fbs")
	return fbcode.Package{Path: "example.com/" + name, Name: name}, nil
}

// messages returns the code of the last file of a schema.
func messages(s *fbs.Schema, bare bool) ([]byte, error) {
	f := s.Files[len(s.Files)-1]
	p, _ := packageOf(f)
	return fbcode.Messages(f, fbcode.Names{}, fbcode.Options{Header: "// Code.\n\n", Package: p, Of: packageOf, Bare: bare})
}

// declarations returns the declarations in Go code, without comments, by their first lines.
func declarations(t *testing.T, code []byte) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for i, part := range strings.Split(string(code), "\npackage ") {
		if i == 0 {
			continue
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, "code.go", "package "+part, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			var b bytes.Buffer
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				continue
			}
			if err := printer.Fprint(&b, files, d); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(strings.Fields(b.String()), " ") // alignment differs with comments
			first, _, _ := strings.Cut(b.String(), "\n")
			if first == "const (" {
				first = text[:min(len(text), 30)]
			}
			if all[first] != "" {
				t.Errorf("%s is declared twice", first)
			}
			all[first] = text
		}
	}
	return all
}

// The code declares what flatc's does, and all of it is the same but for comments. The files in
// testdata are what flatc 25.12.19 wrote, one behind the other:
//
//	flatc --go --gen-object-api --go-module-name example.com world.fbs shared.fbs
//	cat world/*.go >world.flatc
//	cat shared/*.go >shared.flatc
func TestMessagesAsFlatc(t *testing.T) {
	for _, name := range []string{"shared", "world"} {
		t.Run(name, func(t *testing.T) {
			s, err := new(fbs.Loader).Load("testdata/" + name + ".fbs")
			if err != nil {
				t.Fatal(err)
			}
			code, err := messages(s, true)
			if err != nil {
				t.Fatal(err)
			}
			golden, err := os.ReadFile("testdata/" + name + ".flatc")
			if err != nil {
				t.Fatal(err)
			}
			got, want := declarations(t, code), declarations(t, golden)
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if got[name] != want[name] {
					t.Errorf("%s\nis\n%s\nwant\n%s", name, got[name], want[name])
				}
			}
			for _, name := range slices.Sorted(maps.Keys(got)) {
				if want[name] == "" {
					t.Errorf("flatc does not declare %s", name)
				}
			}
			if len(got) < 20 {
				t.Errorf("there are only %d declarations", len(got))
			}
		})
	}
}

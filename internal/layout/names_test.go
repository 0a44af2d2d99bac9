package layout_test

import (
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Names of package anser in the documents exist: anser.Name on every page but those that tell history, and
// the options in the tables of docs/limits.md.
func TestNamesInDocumentsExist(t *testing.T) {
	have := exportedNames(t, "anser")
	name := regexp.MustCompile(`\banser\.([A-Z][A-Za-z]*)`) // of the package, or of a fuzz target in it
	pages := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && path != root && (n[0] == '.' || n == "bin" || n == "node_modules" || n == "testdata" || n == "decisions") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".md") || d.Name() == "CHANGELOG.md" {
			return nil
		}
		pages++
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllSubmatch(text, -1) {
			if !have[string(m[1])] && !strings.HasPrefix(string(m[1]), "Fuzz") {
				t.Errorf("%s names anser.%s, which does not exist", path, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 30 {
		t.Errorf("found %d pages: does this test still find them?", pages)
	}
	limits, err := os.ReadFile(filepath.Join(root, "docs", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	options := 0
	for line := range strings.Lines(string(limits)) {
		cells := strings.Split(line, "|")
		if len(cells) != 8 {
			continue
		}
		for _, m := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[3], -1) {
			options++
			if !have[m[1]] {
				t.Errorf("docs/limits.md names the option %s, which does not exist", m[1])
			}
		}
	}
	if options < 15 {
		t.Errorf("docs/limits.md names %d options: does this test still understand its tables?", options)
	}
}

// exportedNames are the exported names that a package of the core declares outside of functions.
func exportedNames(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	for _, s := range sources(t) {
		for _, f := range s.files {
			if f.Name.Name != pkg {
				continue
			}
			for _, d := range f.Decls {
				addExported(names, d)
			}
		}
	}
	return names
}

func addExported(names map[string]bool, d ast.Decl) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names[id.Name] = true
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(spec.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					add(id)
				}
			}
		}
	}
}

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

// Go names in the documents exist: names such as `anser.Call`, `auth.Token` and `Server.Stats` on
// every page except historical ones, and the options in the tables of docs/limits.md.
func TestNamesInDocumentsExist(t *testing.T) {
	packages, members := declared(t)
	inPackage := regexp.MustCompile(`\b([a-z][a-z0-9]*)\.([A-Z][A-Za-z0-9]*)`)
	inType := regexp.MustCompile("`([A-Z][A-Za-z]*)\\.([A-Z][A-Za-z]*)[`(]")
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
		// These pages also name identifiers in packages and types of other frameworks.
		others := strings.HasPrefix(d.Name(), "from-") || d.Name() == "CONTRACT.md" || filepath.Base(filepath.Dir(path)) == "callers"
		for _, m := range inPackage.FindAllStringSubmatch(string(text), -1) {
			if others && m[1] != "anser" || m[0] == "flatbuffers.Builder" { // google/flatbuffers
				continue
			}
			if have := packages[m[1]]; have != nil && !have[m[2]] && !strings.HasPrefix(m[2], "Fuzz") {
				t.Errorf("%s names %s.%s, which does not exist", path, m[1], m[2])
			}
		}
		for _, m := range inType.FindAllStringSubmatch(string(text), -1) {
			if have := members[m[1]]; have != nil && !others && !have[m[2]] {
				t.Errorf("%s names %s.%s, which does not exist", path, m[1], m[2])
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
	have := packages["anser"]
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

// declared returns the exported names of the repository: the names by package, and the methods and
// fields by type. Packages and types of the same name are merged. Programs and comparisons with
// other frameworks are left out.
func declared(t *testing.T) (packages, members map[string]map[string]bool) {
	t.Helper()
	packages, members = make(map[string]map[string]bool), make(map[string]map[string]bool)
	for _, s := range sources(t) {
		if s.path == "internal/test/limits" { // only tests; the name is a variable in examples
			continue
		}
		if s.program() || regexp.MustCompile(`^(arena|e2e|examples)(/|$)`).MatchString(s.path) {
			continue
		}
		for _, f := range s.files {
			names := in(packages, f.Name.Name)
			for _, d := range f.Decls {
				declare(names, members, d)
			}
		}
	}
	return packages, members
}

func in(sets map[string]map[string]bool, key string) map[string]bool {
	if sets[key] == nil {
		sets[key] = make(map[string]bool)
	}
	return sets[key]
}

func declare(names map[string]bool, members map[string]map[string]bool, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
		} else if len(d.Recv.List) == 1 {
			in(members, receiverName(d.Recv.List[0].Type))[d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names[spec.Name.Name] = true
				declareMembers(in(members, spec.Name.Name), spec.Type)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					names[id.Name] = true
				}
			}
		}
	}
}

// declareMembers adds the fields of a struct, and the methods of an interface.
func declareMembers(have map[string]bool, x ast.Expr) {
	var list *ast.FieldList
	switch x := x.(type) {
	case *ast.StructType:
		list = x.Fields
	case *ast.InterfaceType:
		list = x.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, id := range f.Names {
			have[id.Name] = true
		}
	}
}

func receiverName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiverName(x.X)
	case *ast.IndexExpr:
		return receiverName(x.X)
	case *ast.IndexListExpr:
		return receiverName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

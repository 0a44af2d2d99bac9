package layout_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	core = "github.com/anser-rpc/anser"
	root = "../.." // of the repository
)

// A source is a package of the repository, of any module, with all of its files except tests, for
// all platforms.
type source struct {
	path  string // relative to the core's, "." for the root package
	core  bool   // whether it is in the core module
	files []*ast.File
	fset  *token.FileSet
}

// program reports whether the package is a command.
func (s source) program() bool { return s.files[0].Name.Name == "main" }

// sources returns every package of the repository. They are parsed once for all tests.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parseAll()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parseAll reads the folders itself: go list would leave out files of other platforms, and go test
// would not notice that its cached result is outdated.
var parseAll = sync.OnceValues(func() ([]source, error) {
	var all []source
	modules := map[string]bool{} // folders with a go.mod other than the core's
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != root && (name[0] == '.' || name[0] == '_' || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			modules[dir] = dir != root
		} else {
			modules[dir] = modules[filepath.Dir(dir)]
		}
		s, err := parsePackage(dir)
		if err != nil || len(s.files) == 0 {
			return err
		}
		s.core = !modules[dir]
		all = append(all, s)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("no packages found")
	}
	return all, err
})

func parsePackage(dir string) (source, error) {
	path, err := filepath.Rel(root, dir)
	if err != nil {
		return source{}, err
	}
	s := source{path: filepath.ToSlash(path), fset: token.NewFileSet()}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return source{}, err
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(s.fset, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return source{}, fmt.Errorf("package %s: %w", s.path, err)
		}
		s.files = append(s.files, f)
	}
	return s, nil
}

// relative returns an import path of this repository in the form of the rules.
func relative(path string) string {
	if path == core {
		return "."
	}
	return strings.TrimPrefix(path, core+"/")
}

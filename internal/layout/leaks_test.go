package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// leaky lists the packages whose tests may leave goroutines behind, each with the reason. "x/**"
// is every package below x.
var leaky = map[string]string{
	"arena/peers/**":          "servers of other frameworks that have no end but that of their process",
	"arena/workload":          "what its tests need would be needed by the module of every peer",
	"internal/test/rpcx/move": "rpcx's plugins for registries have no end but that of their process",
	"internal/ceiling":        "its server has no end but that of its process, as it is the least that a server can be",
}

// Tests of packages that start goroutines check for leaks at their end.
func TestLeaksAreLookedFor(t *testing.T) {
	used := make(map[string]bool)
	for _, p := range testedPackages(t) {
		pattern, allowed := exception(leaky, p.path)
		if !p.busy || p.checks {
			continue
		}
		if used[pattern] = true; !allowed {
			t.Errorf("the tests of %s start goroutines and do not look for those that are left: call goleak.VerifyTestMain, ansertest.Main or servers.Main in TestMain, or say in internal/layout why not", p.path)
		}
	}
	allAreUsed(t, leaky, used)
}

// exception returns the pattern of a list of exceptions that a path matches.
func exception(list map[string]string, path string) (pattern string, ok bool) {
	for pattern := range list {
		if match(pattern, path) {
			return pattern, true
		}
	}
	return "", false
}

// allAreUsed checks that each exception of a list is needed.
func allAreUsed(t *testing.T, list map[string]string, used map[string]bool) {
	t.Helper()
	for pattern := range list {
		if !used[pattern] {
			t.Errorf("the exception for %s is not needed any more: remove it", pattern)
		}
	}
}

// A tested package is a folder with tests.
type tested struct {
	path   string
	busy   bool // it starts goroutines, directly or indirectly
	checks bool // its tests check for leaked goroutines
}

func testedPackages(t *testing.T) []tested {
	t.Helper()
	var all []tested
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != root && (name[0] == '.' || name[0] == '_' || name == "testdata" || name == "node_modules" || name == "bin") {
			return filepath.SkipDir
		}
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, "_test.go") }) {
			return err
		}
		path, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		p := tested{path: filepath.ToSlash(path)}
		for _, name := range names {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			p.busy = p.busy || startsGoroutines(f)
			p.checks = p.checks || strings.HasSuffix(name, "_test.go") && looksForLeaks(f)
		}
		all = append(all, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// startsGoroutines reports whether a file has a go statement or a call of a method Go, such as
// that of a sync.WaitGroup, or imports a package that starts goroutines for its users.
func startsGoroutines(f *ast.File) bool {
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err == nil && (path == core || path == "net/http/httptest") {
			return true
		}
	}
	return contains(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			return true
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			return ok && s.Sel.Name == "Go"
		}
		return false
	})
}

// checkers are the functions that check for leaked goroutines.
var checkers = []string{"goleak.VerifyTestMain", "goleak.Find", "ansertest.Main", "servers.Main", "example.Check"}

func looksForLeaks(f *ast.File) bool {
	return contains(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return ok && slices.Contains(checkers, x.Name+"."+s.Sel.Name)
	})
}

func contains(f *ast.File, is func(ast.Node) bool) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}

func TestLooksForLeaks(t *testing.T) {
	for _, c := range []struct {
		code         string
		busy, checks bool
	}{
		{"package p\nfunc f() { go f() }", true, false},
		{"package p\nfunc f() { wg.Go(f) }", true, false},
		{"package p\nimport _ \"" + core + "\"", true, false},
		{"package p\nimport _ \"" + core + "/wire\"\nfunc f() { f() }", false, false},
		{"package p\nfunc TestMain(m *testing.M) { goleak.VerifyTestMain(m) }", false, true},
		{"package p\nfunc Test(t *testing.T) { example.Check(t, run); go run() }", true, true},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", c.code, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if busy, checks := startsGoroutines(f), looksForLeaks(f); busy != c.busy || checks != c.checks {
			t.Errorf("%s\nstarts goroutines: %v, looks for them: %v", c.code, busy, checks)
		}
	}
}

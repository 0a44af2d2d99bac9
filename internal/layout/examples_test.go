package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unshown lists the public packages that need no Example, each with the reason. "x/**" is every
// package below x.
var unshown = map[string]string{
	"codec/codectest/calltest":     "a helper of the tests of codecs in this repository",
	"codec/codectest/generated":    "types that tests encode",
	"codec/codectest/generated/**": "types that tests encode",
	"codec/msgpack/mprt":           "only generated code and package msgpack call it",
	"codec/protobuf/pbrt":          "only generated code and package protobuf call it",
	"contract/anser":               "only generated code imports it",
}

// Every public package shows its use in an Example, which is a part of its documentation.
func TestPackagesHaveExamples(t *testing.T) {
	used := make(map[string]bool)
	checked := 0
	for _, s := range sources(t) {
		if s.program() || !public(s.path) {
			continue
		}
		checked++
		if hasExample(t, filepath.Join(root, filepath.FromSlash(s.path))) {
			continue
		}
		pattern, allowed := exception(unshown, s.path)
		if used[pattern] = true; !allowed {
			t.Errorf("package %s has no Example: write a short one, or say in internal/layout why it needs none", s.path)
		}
	}
	if checked < 50 {
		t.Fatalf("found %d packages: does this test still find them?", checked)
	}
	allAreUsed(t, unshown, used)
}

// public reports whether a package is for users to import. Internal packages are not, nor are those
// of the repository's own programs.
func public(path string) bool {
	parts := strings.Split(path, "/")
	if slices.Contains(parts, "internal") {
		return false
	}
	switch parts[0] {
	case "arena", "cmd", "e2e", "examples", "scripts":
		return false
	}
	return true
}

// hasExample reports whether tests in the folder have an Example function.
func hasExample(t *testing.T, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(d.Name.Name, "Example") {
				return true
			}
		}
	}
	return false
}

package layout_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// servingMistakes are ways to serve that do not tell a clean end, where the error is nil, from a
// failure, or that lose the reason of a failure.
var servingMistakes = map[string]*regexp.Regexp{
	"a clean end looks like a failure: compare the error with nil first": regexp.MustCompile(
		`\b(Fatal(f|ln)?|Panic(f|ln)?|panic|Exit)\([^\n]*\.(ListenAndServe|Serve)\([^\n]*|` +
			`\berr :?= [\w.]+\.(ListenAndServe|Serve)\([^\n;]*\n\s*[\w.]*(Fatal(f|ln)?|Panic(f|ln)?|panic)\([^\n]*`),
	"the error is lost: return it, or compare it with nil": regexp.MustCompile(
		`(?m)^[ \t]*\w+\.(ListenAndServe|Serve)\([^\n]*`),
}

// notServing are in calls of other functions: net/http's always return an error, and that of
// route.Recorder adds methods to a server.
var notServing = []string{"http.", "rec.Serve(debug)"}

// servingFindings returns the mistakes in a document or a function.
func servingFindings(text string) []string {
	var found []string
	for mistake, pattern := range servingMistakes {
	matches:
		for _, m := range pattern.FindAllString(text, -1) {
			for _, other := range notServing {
				if strings.Contains(m, other) {
					continue matches
				}
			}
			found = append(found, fmt.Sprintf("%q: %s", strings.TrimSpace(m), mistake))
		}
	}
	return found
}

// What users copy checks the error of serving: documents, comments, programs in examples, and
// Example functions.
func TestServingIsChecked(t *testing.T) {
	for name, page := range documents(t) {
		for _, f := range servingFindings(page) {
			t.Errorf("%s: %s", name, f)
		}
	}
	functions := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && path != root && (n[0] == '.' || n == "bin" || n == "node_modules" || n == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, c := range f.Comments {
			for _, finding := range servingFindings(c.Text()) {
				t.Errorf("%s: %s", path, finding)
			}
		}
		example := strings.HasPrefix(path, filepath.Join(root, "examples"))
		for _, d := range f.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok || !example && !strings.HasPrefix(d.Name.Name, "Example") || strings.HasPrefix(d.Name.Name, "Test") {
				continue
			}
			functions++
			var text strings.Builder
			if err := printer.Fprint(&text, fset, d); err != nil {
				return err
			}
			for _, finding := range servingFindings(text.String()) {
				t.Errorf("%s: %s", path, finding)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if functions < 100 {
		t.Fatalf("found %d functions: does this test still find them?", functions)
	}
}

func TestServingFindings(t *testing.T) {
	for text, found := range map[string]int{
		"log.Fatal(s.ListenAndServe(address))":                                    1,
		"\tif err := s.ListenAndServe(address); err != nil {\n\t\tlog.Fatal(err)": 0,
		"err = s.Serve(l)\nlog.Fatalf(\"serve: %v\", err)":                        1,
		"err := s.Serve(l)\nif err != nil {\n\tlog.Fatal(err)\n}":                 0,
		"os.Exit(run(server.Serve(l)))":                                           1,
		"\ts.ListenAndServe(address)\n":                                           1,
		"\tgo s.Serve(l)\n\treturn s.Serve(l)\n":                                  0,
		"| `s.Serve(l)` | or `s.ListenAndServe(address)` |":                       0,
		"log.Fatal(http.ListenAndServe(address, nil))":                            0,
	} {
		if got := servingFindings(text); len(got) != found {
			t.Errorf("%q: found %q, want %d", text, got, found)
		}
	}
}

package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Comments use the same plain words as the documents. Generated files are left out.
func TestCommentsUsePlainWords(t *testing.T) {
	for _, groups := range comments(t) {
		for _, g := range groups {
			for _, word := range unusualWords(g.text) {
				t.Errorf("%s: %q: use a plainer word", g.position, word)
			}
		}
	}
}

// A comment is a comment group of a file, without its markers.
type comment struct {
	position string // path and line of its beginning
	text     string
}

// comments returns the comments of all Go files of the repository, tests included, by the path of
// the file with slashes.
func comments(t *testing.T) map[string][]comment {
	t.Helper()
	all := make(map[string][]comment)
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (name[0] == '.' || name[0] == '_' || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(f) {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		for _, g := range f.Comments {
			at := fset.Position(g.Pos())
			at.Filename = rel
			all[rel] = append(all[rel], comment{at.String(), g.Text()})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 500 {
		t.Fatalf("found %d files with comments: does this test still find them?", len(all))
	}
	return all
}

var quoted = regexp.MustCompile("`[^`]*`|https?://\\S+")

// unusualWords returns the unusual words of a comment. Lines may break between two words of a
// phrase.
func unusualWords(text string) []string {
	return unusual.FindAllString(strings.Join(strings.Fields(quoted.ReplaceAllString(text, "")), " "), -1)
}

func TestUnusualWords(t *testing.T) {
	got := unusualWords("It has\nto wait for `who` ever calls.\nThe writer, whose name is who, stands by.")
	if want := []string{"has to", "who", "stands"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

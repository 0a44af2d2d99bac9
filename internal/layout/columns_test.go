package layout_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// A line of comment, with its indentation. Comments at the end of a line of code may be longer.
var commentLine = regexp.MustCompile(`^\t*// .*`)

// Comments are wrapped like documents; a tab counts as four columns. Links and the output of
// examples may be longer.
func TestCommentsAreWrapped(t *testing.T) {
	for path := range comments(t) {
		if strings.HasPrefix(path, "examples/") || strings.HasPrefix(path, "arena/") || strings.HasPrefix(path, "codec/codectest/generated/") || strings.HasSuffix(path, "example_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if n := commentColumns(line); n > columns {
				t.Errorf("%s:%d: a comment of %d columns: wrap it after at most %d", path, i+1, n, columns)
			}
		}
	}
}

// commentColumns returns the columns of a line of comment that can be wrapped, or 0.
func commentColumns(line string) int {
	if !commentLine.MatchString(line) || strings.Contains(line, "://") {
		return 0
	}
	return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
}

func TestCommentColumns(t *testing.T) {
	for line, want := range map[string]int{
		"// A line.":         10,
		"\t// A line.":       14,
		"x := 1 // A line.":  0,
		"// See https://x.y": 0,
		"//go:build linux":   0,
	} {
		if got := commentColumns(line); got != want {
			t.Errorf("%q has %d columns, want %d", line, got, want)
		}
	}
}

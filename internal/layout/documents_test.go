package layout_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// Words that Go's own documentation and gRPC's hardly use. Documents and comments name the caller,
// the peer or the process in place of a person, and say "must" and "next to".
var unusual = regexp.MustCompile(`(?i)\b(who|whoever|whom|somebody|nobody|those (that|who|which)|so many|` +
	`bec[ao]mes? of|tells? of|told of|for want of|(is|are|was|were) to|has to|have to|had to|stands|stood|beside)\b`)

// Columns of a paragraph in a document. Tables and links that do not fit may be longer.
const columns = 100

// The documents use plain words and wrap their paragraphs. Programs write the pages that are left
// out.
func TestDocumentsUsePlainWords(t *testing.T) {
	for name, page := range documents(t) {
		if name == "docs/reliability.md" || strings.HasPrefix(name, "docs/arena/") || strings.HasPrefix(name, "arena/") {
			continue
		}
		for _, finding := range findings(page, !strings.HasPrefix(name, "examples/")) {
			t.Errorf("%s:%s", name, finding)
		}
	}
}

// findings returns the unusual words of a page with their lines, and with wrapped the paragraphs
// that are too wide. Code, spans of code and the targets of links do not count, nor do parts that
// a program writes.
func findings(page string, wrapped bool) []string {
	hidden := regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|https?://\\S+")
	var found []string
	fenced, written := false, false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
			continue
		case strings.HasPrefix(line, "<!-- "):
			written = strings.HasSuffix(line, ": begin -->")
			continue
		case fenced || written || strings.HasPrefix(line, "    "):
			continue
		}
		if word := unusual.FindString(hidden.ReplaceAllString(line, "")); word != "" {
			found = append(found, fmt.Sprintf("%d: %q: use a plainer word", i+1, word))
		}
		breakable := !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "!") && strings.Contains(hidden.ReplaceAllString(line, ""), " ")
		if n := utf8.RuneCountInString(line); wrapped && breakable && n >= columns {
			found = append(found, fmt.Sprintf("%d: %d columns: wrap the paragraph before column %d", i+1, n, columns))
		}
	}
	return found
}

// A line with three backquotes begins a block of code, with nothing but the language and a file
// name after them, or ends it. Wrapping a paragraph over such a line makes text of the code.
func TestBlocksOfCodeBeginAndEnd(t *testing.T) {
	for name, page := range documents(t) {
		for _, finding := range brokenBlocks(page) {
			t.Errorf("%s:%s", name, finding)
		}
	}
}

var fence = regexp.MustCompile("^ *```([a-z]+( [a-z_.]+)?)?$")

// brokenBlocks returns what is wrong with the blocks of code of a page, with the lines.
func brokenBlocks(page string) []string {
	var found []string
	open := 0
	for i, line := range strings.Split(page, "\n") {
		switch {
		case !strings.Contains(line, "```"):
		case !fence.MatchString(line):
			found = append(found, fmt.Sprintf("%d: %q is neither the begin nor the end of a block of code", i+1, line))
		case open == 0:
			open = i + 1
		default:
			open = 0
		}
	}
	if open != 0 {
		found = append(found, fmt.Sprintf("%d: the block of code does not end", open))
	}
	return found
}

// The source files that documents name exist: `conn_writer.go` in package anser, and paths such as
// `route/parse.go`. Decisions and the changelog record the past and are left out, and so are pages
// about other frameworks.
func TestFilesInDocumentsExist(t *testing.T) {
	file := regexp.MustCompile("`([a-z0-9_/]+\\.go)`")
	names := 0
	for name, page := range documents(t) {
		if name == "CHANGELOG.md" || name == "docs/reliability.md" || strings.HasPrefix(name, "docs/decisions/") || strings.HasPrefix(name, "docs/from-") {
			continue
		}
		for _, m := range file.FindAllStringSubmatch(withoutCode(page), -1) {
			names++
			here := filepath.Join(root, filepath.Dir(name), m[1])
			_, missing := os.Stat(filepath.Join(root, m[1]))
			if _, err := os.Stat(here); err != nil && missing != nil && m[1] != "server/main.go" && m[1] != "client/main.go" {
				t.Errorf("%s names %s, which does not exist", name, m[1])
			}
		}
	}
	if names < 50 {
		t.Errorf("the documents name %d files: does this test still find them?", names)
	}
}

// documents returns the Markdown files of the repository by their path with slashes.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && path != root && (n[0] == '.' || n == "bin" || n == "node_modules" || n == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".md") {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		pages[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 30 {
		t.Fatalf("found %d pages: does this test still find them?", len(pages))
	}
	return pages
}

func TestFindings(t *testing.T) {
	page := strings.Join([]string{
		"Nobody reads this.", "```", "who", "```", "`who` and [a page](who.md) count not.", "<!-- x: begin -->", "whom",
		"<!-- x: end -->", "It has to be.", "| " + strings.Repeat("wide ", 30), strings.Repeat("wide ", 30),
		"[" + strings.Repeat("x", 120) + "](y.md)", "The writer uses it.",
	}, "\n")
	got := strings.Join(findings(page, true), "; ")
	want := `1: "Nobody": use a plainer word; 9: "has to": use a plainer word; 11: 150 columns: wrap the paragraph before column 100`
	if got != want {
		t.Errorf("found %s\nwant %s", got, want)
	}
}

func TestBrokenBlocks(t *testing.T) {
	page := strings.Join([]string{"```go", "x", "```", "```hex a_b.hex", "```", "```go x := 1", "y ```", "  ```"}, "\n")
	got := strings.Join(brokenBlocks(page), "; ")
	want := "6: \"```go x := 1\" is neither the begin nor the end of a block of code; " +
		"7: \"y ```\" is neither the begin nor the end of a block of code; 8: the block of code does not end"
	if got != want {
		t.Errorf("found %s\nwant %s", got, want)
	}
}

// Decisions are numbered without holes. Five numbers were left out at the beginning, and stay that
// way, since a number is never used again.
func TestDecisionsAreNumberedWithoutHoles(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs/decisions/[0-9]*.md"))
	if err != nil {
		t.Fatal(err)
	}
	leftOut := map[int]bool{17: true, 18: true, 21: true, 23: true, 24: true}
	next := 1
	for _, page := range pages {
		for leftOut[next] {
			next++
		}
		name := filepath.Base(page)
		if want := fmt.Sprintf("%04d-", next); !strings.HasPrefix(name, want) {
			t.Errorf("docs/decisions/%s: the next number is %d", name, next)
		}
		if head, err := os.ReadFile(page); err != nil || !strings.HasPrefix(string(head), fmt.Sprintf("# %d. ", next)) {
			t.Errorf("docs/decisions/%s: the title does not begin with \"# %d. \" (%v)", name, next, err)
		}
		next++
	}
	if next < 40 {
		t.Errorf("found decisions up to %d: does this test still find them?", next-1)
	}
}

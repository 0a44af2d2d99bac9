package layout_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// Every relative link of a page refers to an existing file or folder, and its anchor to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	pages := make(map[string]string) // the text without blocks of code, by path
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (name[0] == '.' || name == "bin" || name == "node_modules" || name == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		pages[path] = withoutCode(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 30 {
		t.Fatalf("found %d pages: does this test still find them?", len(pages))
	}
	span := regexp.MustCompile("`[^`\n]*`")
	link := regexp.MustCompile(`\]\(([^()\s]+)\)`)
	for path, text := range pages {
		for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(text, ""), -1) {
			target, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: link %q: %v", path, m[1], err)
				continue
			}
			if target.IsAbs() || target.Host != "" {
				continue
			}
			file := path
			if target.Path != "" {
				file = filepath.Join(filepath.Dir(path), filepath.FromSlash(target.Path))
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s, which does not exist", path, m[1])
				continue
			}
			if page, ok := pages[file]; ok && target.Fragment != "" && !anchors(page)[target.Fragment] {
				t.Errorf("%s: link to %s, but that page has no such heading", path, m[1])
			}
		}
	}
}

// withoutCode returns a page without its fenced blocks of code.
func withoutCode(page string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			b.WriteString(line)
		}
	}
	return b.String()
}

var linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// anchors returns the anchors of a page's headings, in GitHub's form.
func anchors(page string) map[string]bool {
	found := make(map[string]bool)
	for line := range strings.Lines(page) {
		title := strings.TrimLeft(line, "#")
		if n := len(line) - len(title); n == 0 || n > 6 || !strings.HasPrefix(title, " ") {
			continue
		}
		title = linkText.ReplaceAllString(strings.TrimSpace(title), "$1")
		base := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title)
		anchor := base
		for n := 1; found[anchor]; n++ {
			anchor = base + "-" + strconv.Itoa(n)
		}
		found[anchor] = true
	}
	return found
}

func TestAnchors(t *testing.T) {
	got := anchors("# One page\n## `Serve`, and *Dial*?\n## One page\n#!/bin/sh\n### See [that](x.md#y) — now\n")
	for _, want := range []string{"one-page", "serve-and-dial", "one-page-1", "see-that--now"} {
		if !got[want] {
			t.Errorf("no anchor %q in %v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d anchors: want 4: %v", len(got), got)
	}
}

// The file map of docs/design.md names every source file of package anser, and no other.
func TestFileMapIsComplete(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder // the first column
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| `") && len(cells) > 2 && strings.Contains(cells[1], ".go`") {
			rows.WriteString(cells[1])
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	mapped := make(map[string]bool)
	for _, m := range regexp.MustCompile("`([a-z_*]+\\.go)`").FindAllStringSubmatch(rows.String(), -1) {
		found := false
		for _, file := range files {
			name := filepath.Base(file)
			if ok, err := filepath.Match(m[1], name); err != nil {
				t.Fatal(err)
			} else if ok && !strings.HasSuffix(name, "_test.go") {
				mapped[name], found = true, true
			}
		}
		if !found {
			t.Errorf("the file map of docs/design.md names %s, which does not exist", m[1])
		}
	}
	for _, file := range files {
		if name := filepath.Base(file); !strings.HasSuffix(name, "_test.go") && !mapped[name] {
			t.Errorf("the file map of docs/design.md does not name %s", name)
		}
	}
}

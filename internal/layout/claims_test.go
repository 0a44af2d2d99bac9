package layout_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The code contains everything that docs/threat-model.md refers to: tests, files, and rows.
func TestThreatModelNamesWhatIsThere(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder // contents of test files
	files := make(map[string]bool)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (name[0] == '.' || name == "bin" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)] = true
		if strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			tests.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z]*)`").FindAllSubmatch(page, -1)
	if len(names) < 10 {
		t.Errorf("the page names %d tests: does this test still understand it?", len(names))
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "func "+string(name[1])+"(t *testing.T)") && !strings.Contains(tests.String(), "func "+string(name[1])+"(f *testing.F)") {
			t.Errorf("the page names %s, which is not there", name[1])
		}
	}
	for _, name := range regexp.MustCompile("`([a-z_/]+\\.go)`").FindAllSubmatch(page, -1) {
		if !files[string(name[1])] {
			t.Errorf("the page names the file %s, which is not there", name[1])
		}
	}
}

// docs/fuzzing.md has a row for each fuzz target of the repository, and for nothing else.
func TestFuzzTargetsAreListed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "fuzzing.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9/]+\\.Fuzz[A-Za-z0-9]+)`").FindAllSubmatch(page, -1) {
		listed[string(m[1])] = true
	}
	there := make(map[string]bool)
	target := regexp.MustCompile(`(?m)^func (Fuzz[A-Za-z0-9]+)\(f \*testing\.F\)`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (name[0] == '.' || name == "bin" || name == "node_modules" || name == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if folder = filepath.ToSlash(folder); folder == "." {
			folder = "anser"
		}
		text, err := os.ReadFile(path)
		for _, m := range target.FindAllSubmatch(text, -1) {
			there[folder+"."+string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range there {
		if !listed[name] {
			t.Errorf("docs/fuzzing.md has no row for %s", name)
		}
	}
	for name := range listed {
		if !there[name] {
			t.Errorf("docs/fuzzing.md has a row for %s, which does not exist", name)
		}
	}
}

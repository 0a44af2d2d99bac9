package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/report"
	"github.com/anser-rpc/anser/arena/result"
)

var chartNames = []string{"cpu.svg", "latency.svg", "memory.svg", "throughput.svg"}

// written writes everything of a document and returns the folder.
func written(t *testing.T, doc *result.Document) string {
	t.Helper()
	folder := t.TempDir()
	if err := report.Write(doc, filepath.Join(folder, "index.html"), folder, filepath.Join(folder, "results.md")); err != nil {
		t.Fatal(err)
	}
	return folder
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestWriteMakesWhatIsAskedFor(t *testing.T) {
	folder := t.TempDir()
	page, charts, tables := filepath.Join(folder, "a", "b", "page.html"), filepath.Join(folder, "charts"), filepath.Join(folder, "tables.md")
	if err := report.Write(sample(), page, "", ""); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(read(t, page), "<!doctype html>") {
		t.Error("the page does not begin like one")
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("empty paths were not skipped: %v", entries)
	}
	if err := report.Write(sample(), "", charts, tables); err != nil {
		t.Fatal(err)
	}
	for _, name := range chartNames {
		read(t, charts, name)
	}
	read(t, tables)
}

func TestWriteRefusesAnotherSchema(t *testing.T) {
	for _, schema := range []int{0, result.Schema + 1} {
		doc := sample()
		doc.Schema = schema
		path := filepath.Join(t.TempDir(), "page.html")
		err := report.Write(doc, path, "", "")
		if err == nil || !strings.Contains(err.Error(), "arena run --json") {
			t.Errorf("schema %d: %v, and it should say what to do", schema, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("schema %d: the page was written", schema)
		}
	}
}

// A run that was stopped at once, or in which nothing was valid, is still shown.
func TestWriteShowsRunsWithoutFigures(t *testing.T) {
	empty := &result.Document{Schema: result.Schema, NotRun: []result.NotRun{{Peer: "alone", Reason: "needs everything"}}}
	folder := written(t, empty)
	for _, name := range []string{"index.html", "results.md"} {
		if text := read(t, folder, name); !strings.Contains(text, "needs everything") {
			t.Errorf("%s does not say what was not run", name)
		}
	}
	for _, name := range chartNames {
		if text := read(t, folder, name); !strings.Contains(text, "no row to draw") {
			t.Errorf("%s does not say that there is nothing", name)
		}
	}
	broken := sample()
	broken.Rows = broken.Rows[:1]
	broken.Rows[0].Valid, broken.Rows[0].Wrong = false, 1
	folder = written(t, broken)
	if text := read(t, folder, "results.md"); !strings.Contains(text, "Invalid: 1 wrong reply.") {
		t.Error("the tables do not say why the row is invalid")
	}
	if text := read(t, folder, "cpu.svg"); !strings.Contains(text, "anser (1 wrong reply)") {
		t.Error("the chart does not say why the row is not in it")
	}
}

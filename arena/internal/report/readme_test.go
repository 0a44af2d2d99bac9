package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/document"
	"github.com/anser-rpc/anser/arena/internal/report"
)

// Picture and table of a README come from one document, and nothing else of the file changes.
func TestReadme(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "README.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	images := filepath.Join(folder, "docs", "images")
	write("# Before\n\n<!-- arena: begin -->\nold\n<!-- arena: end -->\n\nafter\n")
	for range 2 { // the second time changes nothing
		if err := report.Readme(bestDocument(false), path, images); err != nil {
			t.Fatal(err)
		}
	}
	const want = `# Before

<!-- arena: begin -->
say: 1,000 callers, each with its best connections, commit 0123456789ab, 21 November 2025, 2 cores. One round of 5 s, the first 10 frameworks, each by its fastest peer:

![Calls/s of 3 peers: kitex-longpool 74,000, anser 65,000, drpc 64,000](docs/images/throughput.svg)

| framework      | peer           | connections | calls/s | CPU µs a call | p99 µs | p99 µs at 60 % of its peak |
| -------------- | -------------- | ----------: | ------: | ------------: | -----: | -------------------------: |
| kitex-longpool | kitex-longpool |        each |  74,000 |          13.5 |    135 |                        225 |
| **anser**      | anser          |           2 |  65,000 |          15.4 |    154 |                        256 |
| drpc           | drpc           |          16 |  64,000 |          15.6 |    156 |                        260 |
<!-- arena: end -->

after
`
	if got := read(t, path); got != want {
		t.Errorf("the readme is\n%s\nwant\n%s", got, want)
	}
	write("# No place for it\n")
	if err := report.Readme(bestDocument(false), path, images); err == nil || !strings.Contains(err.Error(), "<!-- arena: begin -->") {
		t.Errorf("%v", err)
	}
}

// The picture and the table in the README of the repository are those of the committed run, both.
func TestRepositoryReadmeIsOfOneRun(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	doc, err := document.Read(filepath.Join(root, "arena", "results", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	images, path := filepath.Join(folder, "docs", "arena", "images"), filepath.Join(folder, "README.md")
	old := read(t, root, "README.md")
	if err := os.WriteFile(path, []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := report.Write(doc, "", images, ""); err != nil {
		t.Fatal(err)
	}
	if err := report.Readme(doc, path, images); err != nil {
		t.Fatal(err)
	}
	const again = "go run ./arena report arena/results/results.json --svg docs/arena/images --readme README.md writes it anew"
	if read(t, path) != old {
		t.Errorf("README.md is not of arena/results/results.json: %s", again)
	}
	if read(t, images, "throughput.svg") != read(t, root, "docs", "arena", "images", "throughput.svg") {
		t.Errorf("the picture is not of arena/results/results.json: %s", again)
	}
}

// Package report shows the document of a run: a page to look at in a browser, charts for a README,
// and tables in Markdown. None of them loads anything from elsewhere.
package report

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/anser-rpc/anser/arena/result"
)

// Write writes the page, the charts throughput.svg, cpu.svg, latency.svg and memory.svg, and the
// tables. A path that is empty is skipped, and folders are made. Nothing is written when any of it
// cannot be made. The document is only read.
func Write(doc *result.Document, htmlPath, svgDir, mdPath string) error {
	if doc.Schema < 1 || doc.Schema > result.Schema {
		return fmt.Errorf("the document has schema %d and this program reads 1 to %d: write it again with arena run --json, or use the arena that wrote it", doc.Schema, result.Schema)
	}
	c := compare(doc)
	files := make(map[string][]byte)
	if htmlPath != "" {
		page, err := pageOf(c)
		if err != nil {
			return err
		}
		files[htmlPath] = page
	}
	if svgDir != "" {
		for name, chart := range chartsOf(c) {
			files[filepath.Join(svgDir, name)] = chart
		}
	}
	if mdPath != "" {
		files[mdPath] = markdownOf(c)
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

package report

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/anser-rpc/anser/arena/result"
)

// The lines of a README between which Readme writes.
const (
	readmeBegin = "<!-- arena: begin -->\n"
	readmeEnd   = "<!-- arena: end -->\n"
)

// readmeRows is how many frameworks the table of a README has.
const readmeRows = 10

// Readme writes the picture throughput.svg of svgDir and a table of the first frameworks into a
// file in Markdown, in place of what is between its two lines for them. Both are of the document's
// headline.
func Readme(doc *result.Document, path, svgDir string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok1 := bytes.Cut(text, []byte(readmeBegin))
	_, after, ok2 := bytes.Cut(rest, []byte(readmeEnd))
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no place for the arena: add the lines %q and %q", path, strings.TrimSpace(readmeBegin), strings.TrimSpace(readmeEnd))
	}
	c := compare(doc)
	g := c.headline()
	if g == nil {
		return fmt.Errorf("%s: the run has no row to show", path)
	}
	picture, err := filepath.Rel(filepath.Dir(path), filepath.Join(svgDir, "throughput.svg"))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(readmeBegin)
	readmeOf(&b, c, g, filepath.ToSlash(picture))
	b.WriteString(readmeEnd)
	b.Write(after)
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// readmeOf writes where the figures are from, the picture and the table.
func readmeOf(b *bytes.Buffer, c *comparison, g *group, picture string) {
	best := g.frameworks()
	fmt.Fprintf(b, "%s: %s, commit %s, %s, %s. %s:\n\n", markdownText(g.workload), markdownText(g.label),
		markdownText(c.doc.Commit), c.doc.Began.UTC().Format("2 January 2006"), counted(c.doc.Machine.Cores, "core"), rangesOf(g))
	fmt.Fprintf(b, "![Calls/s of %s", counted(g.comparable(), "peer"))
	for i, e := range best[:min(len(best), 5)] {
		sign := ","
		if i == 0 {
			sign = ":"
		}
		fmt.Fprintf(b, "%s %s %s", sign, markdownText(e.row.Peer), e.text("throughput"))
	}
	fmt.Fprintf(b, "](%s)\n\n", picture)
	t := markdownTable{
		head:  []string{"framework", "peer", "connections", "calls/s", "CPU µs a call", "p99 µs"},
		right: []bool{false, false, true, true, true, true},
	}
	steady := c.shareOf(g)
	if steady != nil {
		t.head = append(t.head, fmt.Sprintf("p99 µs at %s %% of its peak", thousands(100*steady.shape.Share, 0)))
		t.right = append(t.right, true)
	}
	for _, e := range best[:min(len(best), readmeRows)] {
		name := markdownText(e.row.Framework)
		if c.peers[e.peer].Anser {
			name = "**" + name + "**"
		}
		row := []string{name, markdownText(e.row.Peer), connsWord(&e.row.Shape), e.text("throughput"), e.text("cpu"), e.text("p99")}
		if steady != nil {
			row = append(row, steady.textOf(e.row.Peer, "p99"))
		}
		t.rows = append(t.rows, row)
	}
	t.write(b)
}

// rangesOf says what a figure of the group is.
func rangesOf(g *group) string {
	rounds := 0
	for _, e := range g.entries {
		rounds = max(rounds, len(e.row.Rounds))
	}
	length := strings.TrimSuffix(fmt.Sprintf("%.1f", g.entries[0].row.Shape.Seconds), ".0") + " s"
	if rounds > 1 {
		return fmt.Sprintf("Medians of %d rounds of %s, the first %d frameworks, each by its fastest peer", rounds, length, readmeRows)
	}
	return fmt.Sprintf("One round of %s, the first %d frameworks, each by its fastest peer", length, readmeRows)
}

// frameworks returns the fastest measured entry of each framework, fastest first. References are
// left out.
func (g *group) frameworks() []*entry {
	var best []*entry
	seen := make(map[string]bool)
	f := figureOf("throughput")
	for _, e := range g.sorted(f) {
		if e.status != measured || math.IsNaN(e.value(f)) || seen[e.row.Framework] {
			continue
		}
		seen[e.row.Framework] = true
		best = append(best, e)
	}
	return best
}

// shareOf returns the group of a share of the own peaks whose load is otherwise that of g, nil
// without one.
func (c *comparison) shareOf(g *group) *group {
	for _, other := range c.groups {
		like := other.shape
		like.Share, like.Seconds = 0, g.shape.Seconds
		if other.shape.Share > 0 && other.workload == g.workload && like == g.shape {
			return other
		}
	}
	return nil
}

// textOf prints a figure of a peer in the group, or a dash where it has none.
func (g *group) textOf(peer, key string) string {
	for _, e := range g.entries {
		if e.row.Peer == peer && e.status == measured {
			return e.text(key)
		}
	}
	return "–"
}

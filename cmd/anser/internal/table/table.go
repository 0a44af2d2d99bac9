// Package table formats rows in columns.
package table

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Column is the head of a column.
type Column struct {
	Title string
	Right bool // right-aligned, for numbers, which are never truncated
	// Optional columns are dropped if the table is too wide, the last one first.
	Optional bool
	// Least is the minimum width, for tables that are redrawn with other cells.
	Least int
}

// Table is a header and rows of cells, which may contain colours. The zero value is an empty
// table.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// Add appends a row, which may be shorter than the header.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

const (
	gap       = "  "
	leastCell = 6 // columns are not made narrower than this
)

var head = lipgloss.NewStyle().Faint(true)

// Lines returns the lines of the table, none wider than width; 0 means any width. If it is too
// wide, optional columns are dropped first, then the widest texts are truncated.
func (t *Table) Lines(width int) []string {
	widths := t.widths()
	if width > 0 {
		t.dropOptional(widths, width)
		t.shorten(widths, width)
	}
	titles := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = c.Title
	}
	lines := []string{head.Render(t.line(titles, widths, width))}
	for _, row := range t.Rows {
		lines = append(lines, t.line(row, widths, width))
	}
	return lines
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = max(ansi.StringWidth(c.Title), c.Least)
		for _, row := range t.Rows {
			if i < len(row) {
				widths[i] = max(widths[i], ansi.StringWidth(row[i]))
			}
		}
	}
	return widths
}

// dropped is the width of a column that is not shown.
const dropped = -1

func total(widths []int) int {
	sum := -len(gap)
	for _, w := range widths {
		if w != dropped {
			sum += w + len(gap)
		}
	}
	return sum
}

func (t *Table) dropOptional(widths []int, width int) {
	for i := len(widths) - 1; i >= 0 && total(widths) > width; i-- {
		if t.Columns[i].Optional {
			widths[i] = dropped
		}
	}
}

func (t *Table) shorten(widths []int, width int) {
	for over := total(widths) - width; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if !t.Columns[i].Right && w > leastCell && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func (t *Table) line(cells []string, widths []int, width int) string {
	var b strings.Builder
	for i, w := range widths {
		if w == dropped {
			continue
		}
		text := ""
		if i < len(cells) {
			text = ansi.Truncate(cells[i], w, "…")
		}
		if b.Len() > 0 {
			b.WriteString(gap)
		}
		pad := strings.Repeat(" ", w-ansi.StringWidth(text))
		if t.Columns[i].Right {
			b.WriteString(pad + text)
		} else {
			b.WriteString(text + pad)
		}
	}
	line := strings.TrimRight(b.String(), " ")
	if width > 0 {
		line = ansi.Truncate(line, width, "…")
	}
	return line
}

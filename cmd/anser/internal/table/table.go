// Package table lays rows out in columns for people.
package table

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Column is the head of a column.
type Column struct {
	Title string
	Right bool // numbers stand at the right, and are never shortened
	// Optional columns are left out when the table is too wide, the last one first.
	Optional bool
	// Least is the least width, for tables that are drawn again with other cells.
	Least int
}

// Table is a head and rows of cells, which may have colours in them. The zero value is an empty table.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// Add appends a row, which may be shorter than the head.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

const (
	gap       = "  "
	leastCell = 6 // a column is not made narrower to fit a width
)

var head = lipgloss.NewStyle().Faint(true)

// Lines returns the table line by line, none wider than width; 0 is any width. Where it is too wide,
// optional columns go first, then the widest texts become shorter.
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

// dropped as a width says that the column is not shown.
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

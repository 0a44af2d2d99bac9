// Package table lays rows out in columns for people.
package table

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Column is the head of a column.
type Column struct {
	Title string
	Right bool // numbers stand at the right, and are never shortened
}

// Table is a head and rows of cells. The zero value is an empty table.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// New returns a table with the given titles. A column whose title begins with > is right-aligned.
func New(titles ...string) *Table {
	t := new(Table)
	for _, title := range titles {
		title, right := strings.CutPrefix(title, ">")
		t.Columns = append(t.Columns, Column{Title: title, Right: right})
	}
	return t
}

// Add appends a row, which may be shorter than the head.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

const (
	gap       = "  "
	leastCell = 8 // a column is not made narrower to fit a width
)

// Lines returns the table line by line. Where it is wider than width, the widest texts become
// shorter, as far as that goes; 0 is any width.
func (t *Table) Lines(width int) []string {
	widths := t.widths()
	if width > 0 {
		t.shorten(widths, width)
	}
	titles := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = c.Title
	}
	lines := []string{t.line(titles, widths)}
	for _, row := range t.Rows {
		lines = append(lines, t.line(row, widths))
	}
	return lines
}

// Write prints the table, as wide as the terminal that out is, or as it needs.
func (t *Table) Write(out io.Writer) error {
	_, err := io.WriteString(out, strings.Join(t.Lines(Width(out)), "\n")+"\n")
	return err
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(c.Title)
		for _, row := range t.Rows {
			if i < len(row) {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
			}
		}
	}
	return widths
}

func (t *Table) shorten(widths []int, width int) {
	total := -len(gap)
	for _, w := range widths {
		total += w + len(gap)
	}
	for ; total > width; total-- {
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

func (t *Table) line(cells []string, widths []int) string {
	var b strings.Builder
	for i, w := range widths {
		text := ""
		if i < len(cells) {
			text = Cut(cells[i], w)
		}
		if i > 0 {
			b.WriteString(gap)
		}
		pad := strings.Repeat(" ", w-utf8.RuneCountInString(text))
		if t.Columns[i].Right {
			b.WriteString(pad + text)
		} else {
			b.WriteString(text + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Cut truncates a text to that many characters, and marks the truncation.
func Cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}

// Terminal reports whether out is a terminal on which lines can be redrawn.
func Terminal(out io.Writer) bool { return Width(out) > 0 && os.Getenv("TERM") != "dumb" }

// Width returns the width of a terminal, or 0 where out is none.
func Width(out io.Writer) int {
	f, ok := out.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	if size.Col == 0 {
		return 80
	}
	return int(size.Col)
}

// Micros writes microseconds with three digits: "87.1 µs", "1.25 ms", "12.0 s".
func Micros(us float64) string {
	switch { // the bounds are where the next unit begins when rounded to three digits
	case us < 999.5:
		return Digits(us) + " µs"
	case us < 999_500:
		return Digits(us/1e3) + " ms"
	}
	return Digits(us/1e6) + " s"
}

// Digits writes f, below 1000, with three digits.
func Digits(f float64) string {
	precision := 2
	switch {
	case f >= 99.95:
		precision = 0
	case f >= 9.995:
		precision = 1
	}
	return strconv.FormatFloat(f, 'f', precision, 64)
}

// Count writes a whole number with a comma at every third digit.
func Count(f float64) string {
	text := strconv.FormatFloat(f, 'f', 0, 64)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return sign + text
}

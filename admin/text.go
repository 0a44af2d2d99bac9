package admin

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/anser-rpc/anser/internal/printable"
)

// view is a page with its data, for people.
type view struct {
	Page     *page
	Doc      *Document
	Sections []section
	Extra    []link
}

// Place says where the process runs, and for how long.
func (v *view) Place() string {
	p := &v.Doc.Process
	var parts []string
	if p.Host != "" {
		parts = append(parts, p.Host)
	}
	parts = append(parts, fmt.Sprintf("pid %d", p.PID), "up "+span(v.Doc.Time.Sub(p.Started)))
	return printable.Text(strings.Join(parts, " · "))
}

// text returns the page for a terminal.
func (v *view) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s · %s\n%s · %s", printable.Text(v.Doc.Process.Name), v.Place(), v.Page.title, v.Doc.Time.Format("2006-01-02 15:04:05 MST"))
	if v.Doc.Window > 0 {
		fmt.Fprintf(&b, " · rates over %s", span(v.Doc.Window))
	}
	b.WriteString("\n")
	for i := range v.Sections {
		b.WriteString("\n")
		v.Sections[i].writeText(&b)
	}
	if v.Page.path == "" {
		b.WriteString("\nPages:")
		for _, at := range pages[1:] {
			b.WriteString(" " + at.path)
		}
		for _, l := range v.Extra {
			b.WriteString(" " + l.Path)
		}
		b.WriteString("; each with .json for programs, and all.json\n")
	}
	return b.String()
}

func (s *section) writeText(b *strings.Builder) {
	if len(s.Tiles) > 0 {
		for _, t := range s.Tiles {
			fmt.Fprintf(b, "%-20s %s\n", t.Title, t.Text)
		}
		return
	}
	b.WriteString(strings.ToUpper(printable.Text(s.Title)) + "\n")
	if s.Note != "" {
		b.WriteString(printable.Text(s.Note) + "\n")
	}
	if len(s.Rows) == 0 {
		b.WriteString(printable.Text(s.Empty) + "\n")
		return
	}
	lines := make([][]string, 0, len(s.Rows)+1)
	var head []string
	for _, c := range s.Columns {
		head = append(head, c.Title)
	}
	lines = append(lines, head)
	for _, row := range s.Rows {
		var line []string
		for _, c := range row {
			line = append(line, printable.Text(c.Text))
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(s.Columns))
	for _, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, line := range lines {
		var out strings.Builder
		for i, text := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if s.Columns[i].Number {
				out.WriteString(pad + text)
			} else {
				out.WriteString(text + pad)
			}
			out.WriteString("  ")
		}
		b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
	}
}

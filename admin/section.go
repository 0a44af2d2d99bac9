package admin

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// section is a table of a page, from which all forms for people are made.
type section struct {
	Title   string
	Note    string
	Tiles   []tile // instead of a table
	Columns []column
	Rows    [][]cell
	Empty   string   // without rows
	Legend  []string // classes of the parts of bars, which are their names too
}

// tile is a number that is shown large, with a line of its values while a page is open.
type tile struct {
	Title string
	Text  string
	Class string
	Value float64
}

type column struct {
	Title  string
	Number bool
}

// cell is one value.
type cell struct {
	Text  string
	Key   string // that names the row, if it is not the text of its first cell
	Link  string // to another page
	Class string // "bad", "warn", "dim", "trace", or ""
	Parts []part // of a bar, instead of Text in HTML
	Hint  string
}

// part is a part of a bar.
type part struct {
	Class string
	From  float64 // both from 0 to 1
	Width float64
	Hint  string
}

func columns(titles ...string) (list []column) {
	for _, t := range titles {
		c := column{Title: t}
		if name, ok := strings.CutPrefix(t, ">"); ok {
			c = column{name, true}
		}
		list = append(list, c)
	}
	return list
}

// rowKey returns what a row keeps while the page is renewed.
func rowKey(row []cell) string {
	for _, c := range row {
		if c.Key != "" {
			return c.Key
		}
	}
	return row[0].Link + row[0].Text
}

// prune drops the columns that are empty in all rows.
func (s *section) prune() {
	for i := len(s.Columns) - 1; i > 0; i-- {
		empty := func(row []cell) bool { return row[i].Text == "" && len(row[i].Parts) == 0 }
		if len(s.Rows) == 0 || slices.ContainsFunc(s.Rows, func(row []cell) bool { return !empty(row) }) {
			continue
		}
		s.Columns = slices.Delete(slices.Clone(s.Columns), i, i+1)
		for j, row := range s.Rows {
			s.Rows[j] = slices.Delete(row, i, i+1)
		}
	}
}

// longText is the number of bytes from which a cell has several lines.
const longText = 60

func plain(text string) cell { return cell{Text: text} }

func dim(text string) cell { return cell{Text: text, Class: "dim"} }

func bad(text string) cell { return cell{Text: text, Class: "bad"} }

// number is a count, which is dim if it is 0 and has a class otherwise.
func number[N int | int64 | uint64](n N, class string) cell {
	if n == 0 {
		return dim("0")
	}
	return cell{Text: fmt.Sprint(n), Class: class}
}

// rate formats a number per second.
func rate(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 9.95:
		return fmt.Sprintf("%.1f", f)
	case f < 10_000:
		return fmt.Sprintf("%.0f", f)
	case f < 10_000_000:
		return fmt.Sprintf("%.1fk", f/1000)
	}
	return fmt.Sprintf("%.1fM", f/1e6)
}

// size formats a number of bytes.
func size(n float64) string {
	for _, unit := range [...]string{"B", "KiB", "MiB", "GiB"} {
		if n < 1024 {
			if n == math.Trunc(n) || n >= 100 {
				return fmt.Sprintf("%.0f %s", n, unit)
			}
			return fmt.Sprintf("%.1f %s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%.1f TiB", n)
}

// span formats a duration with three digits: "87.1 µs", "1.25 ms", "2m5s".
func span(d time.Duration) string {
	switch { // the limits account for rounding
	case d <= 0:
		return "0 s"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < 999_500*time.Nanosecond:
		return digits(float64(d)/1e3) + " µs"
	case d < 999_500*time.Microsecond:
		return digits(float64(d)/1e6) + " ms"
	case d < 59_950*time.Millisecond:
		return digits(d.Seconds()) + " s"
	}
	return d.Round(time.Second).String()
}

// digits formats f, from 1 to 1000, with three digits.
func digits(f float64) string {
	switch {
	case f >= 99.95:
		return fmt.Sprintf("%.0f", f)
	case f >= 9.995:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func percent(f float64) string {
	switch {
	case f == 0:
		return "0 %"
	case f < 0.001:
		return "<0.1 %"
	}
	return fmt.Sprintf("%.1f %%", f*100)
}

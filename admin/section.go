package admin

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// section is a table of a page, from which all forms for people are made.
type section struct {
	Title   string
	Note    string
	Columns []column
	Rows    [][]cell
	Empty   string   // without rows
	Legend  []string // classes of the parts of bars, which are their names too
}

type column struct {
	Title  string
	Number bool
}

// cell is one value.
type cell struct {
	Text  string
	Link  string // to another page
	Class string // "bad", "warn", "dim", or ""
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
	case f < 10:
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

// span formats a duration with three digits.
func span(d time.Duration) string {
	unit := time.Nanosecond
	for _, u := range [...]time.Duration{time.Microsecond, time.Millisecond, time.Second} {
		if d >= u {
			unit = u
		}
	}
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d < 0:
		return "0s"
	case unit == time.Nanosecond:
		return d.String()
	}
	step := unit / 100
	if d >= 10*unit {
		step = unit / 10
	}
	if d >= 100*unit {
		step = unit
	}
	return d.Round(step).String()
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

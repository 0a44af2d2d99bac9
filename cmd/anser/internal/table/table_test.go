package table_test

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/anser-rpc/anser/cmd/anser/internal/table"
)

func lines(t *table.Table, width int) string {
	var plain []string
	for _, line := range t.Lines(width) {
		plain = append(plain, ansi.Strip(line))
	}
	return strings.Join(plain, "\n")
}

func TestLines(t *testing.T) {
	tab := table.Table{Columns: []table.Column{{Title: "NAME"}, {Title: "ADDRESS", Optional: true}, {Title: "CALLS", Right: true}}}
	tab.Add("arithmetic", "127.0.0.1:8972", "1,234")
	tab.Add("文字", "\x1b[31mred\x1b[0m", "5")
	tab.Add("short")
	for width, want := range map[int]string{
		0:  "NAME        ADDRESS         CALLS\narithmetic  127.0.0.1:8972  1,234\n文字        red                 5\nshort",
		33: "NAME        ADDRESS         CALLS\narithmetic  127.0.0.1:8972  1,234\n文字        red                 5\nshort",
		32: "NAME        CALLS\narithmetic  1,234\n文字            5\nshort",
		15: "NAME      CALLS\narithme…  1,234\n文字          5\nshort",
		9:  "NAME    …\narithm…  …\n文字    …\nshort",
	} {
		got := lines(&tab, width)
		if width == 9 { // narrower than the table can be: only the maximum width is checked
			for line := range strings.Lines(got) {
				if ansi.StringWidth(strings.TrimSpace(line)) > width {
					t.Errorf("width %d: %q", width, line)
				}
			}
			continue
		}
		if got != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got, want)
		}
	}
	steady := table.Table{Columns: []table.Column{{Title: "A", Least: 4}, {Title: "B", Right: true, Least: 3}}}
	steady.Add("x", "1")
	if got, want := lines(&steady, 0), "A       B\nx       1"; got != want {
		t.Errorf("with least widths:\n%s\nwant\n%s", got, want)
	}
	if got := lines(&table.Table{}, 10); got != "" {
		t.Errorf("an empty table is %q", got)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 999: "999 ns", 1000: "1.00 µs", 9994: "9.99 µs", 9995: "10.0 µs", 87_123: "87.1 µs", 999_499: "999 µs",
		999_600: "1.00 ms", 1_250_000: "1.25 ms", 999_960_000: "1.00 s", time.Second: "1.00 s", 12 * time.Second: "12.0 s", time.Hour: "3600 s",
	} {
		if got := table.Duration(d); got != want {
			t.Errorf("Duration(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := table.Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	for f, want := range map[float64]string{0: "0.0", 1.25: "1.2", 9.96: "10", 1234.5: "1,235"} {
		if got := table.Rate(f); got != want {
			t.Errorf("Rate(%g) = %q, want %q", f, got, want)
		}
	}
}

package table_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/table"
)

func TestLines(t *testing.T) {
	tab := table.New("NAME", ">CALLS", "NOTES")
	tab.Add("anser", "1,234", "much that is worth a note")
	tab.Add("netrpc µ", "5")
	for width, want := range map[int]string{
		0:  "NAME      CALLS  NOTES\nanser     1,234  much that is worth a note\nnetrpc µ      5",
		30: "NAME      CALLS  NOTES\nanser     1,234  much that is…\nnetrpc µ      5",
		5:  "NAME      CALLS  NOTES\nanser     1,234  much th…\nnetrpc µ      5",
	} {
		if got := strings.Join(tab.Lines(width), "\n"); got != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got, want)
		}
	}
	var b bytes.Buffer
	if err := tab.Write(&b); err != nil || !strings.HasSuffix(b.String(), "5\n") {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestWidth(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if table.Width(file) != 0 || table.Terminal(file) || table.Width(new(bytes.Buffer)) != 0 {
		t.Error("what is not a terminal has a width")
	}
}

func TestNumbers(t *testing.T) {
	for us, want := range map[float64]string{0: "0.00 µs", 0.5: "0.50 µs", 9.994: "9.99 µs", 87.12: "87.1 µs", 999.4: "999 µs", 999.6: "1.00 ms", 12_500: "12.5 ms", 999_600: "1.00 s", 12e6: "12.0 s"} {
		if got := table.Micros(us); got != want {
			t.Errorf("%v is %q, want %q", us, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0", 999.4: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := table.Count(n); got != want {
			t.Errorf("%v is %q, want %q", n, got, want)
		}
	}
	if got := table.Cut("ab", 0); got != "…" {
		t.Errorf("%q", got)
	}
}

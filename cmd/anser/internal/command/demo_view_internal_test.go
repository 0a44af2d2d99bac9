package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/demo"
)

// Where the table cannot be redrawn it is printed again and again, and the commands to try only
// once, and again when they are others.
func TestDemoTrials(t *testing.T) {
	var out bytes.Buffer
	v := newDemoView(streams{out: &out, err: &out}, false)
	show := func(debug string) (tables, trials int) {
		out.Reset()
		v.shown = time.Time{} // the next table is due
		v.Show(demo.Snapshot{
			Address: "127.0.0.1:8080", Debug: debug, Elapsed: time.Second,
			Rows: []demo.Row{{Service: "arith", Instance: "arith-1", State: "up"}},
		})
		return strings.Count(out.String(), "arith-1  "), strings.Count(out.String(), "try:  ")
	}
	tables, first := show("")
	if tables != 1 || first == 0 {
		t.Errorf("the first time: %d tables, %d commands\n%s", tables, first, &out)
	}
	if tables, trials := show(""); tables != 1 || trials != 0 {
		t.Errorf("again: %d tables, %d commands\n%s", tables, trials, &out)
	}
	if tables, trials := show("127.0.0.1:9"); tables != 1 || trials != first+1 {
		t.Errorf("with another command: %d tables, %d commands\n%s", tables, trials, &out)
	}
}

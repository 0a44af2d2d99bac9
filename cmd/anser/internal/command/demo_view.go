package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/anser-rpc/anser/cmd/anser/internal/demo"
	"github.com/anser-rpc/anser/cmd/anser/internal/screen"
	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
)

// demoView shows the demo: on a terminal as a table that is redrawn below the event lines;
// elsewhere as lines, with the table now and then; with --json only the events.
type demoView struct {
	out    *screen.Screen
	tables bool
	last   demo.Snapshot
	shown  time.Time // when the table was last printed if it cannot be redrawn
	tried  []trial   // that were last printed below it
}

func newDemoView(s streams, asJSON bool) *demoView {
	if asJSON {
		return &demoView{out: screen.New(s.err)}
	}
	return &demoView{out: screen.New(s.out), tables: true}
}

// tableEvery is the interval between two tables if they cannot be redrawn.
const tableEvery = 5 * time.Second

var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
)

// Event implements demo.View.
func (v *demoView) Event(e demo.Event) {
	clock := faint.Render(time.Now().Format("15:04:05"))
	kind := eventStyle(e.Kind).Render(fmt.Sprintf("%-8s", e.Kind))
	line := fmt.Sprintf("%s  %s  %-7s  %s", clock, kind, e.Instance, v.wrapped(e.Text))
	if v.tables && v.out.Terminal() {
		v.out.Draw([]string{line}, v.block())
		return
	}
	v.out.Print(line)
}

const (
	eventIndent = len("15:04:05  draining  arith-1  ")
	leastWrap   = 30 // a narrower terminal wraps the text itself
)

// wrapped returns the text of an event with its lines below each other, on a terminal.
func (v *demoView) wrapped(text string) string {
	width, _ := v.out.Size()
	if width-eventIndent < leastWrap {
		return text
	}
	return strings.ReplaceAll(ansi.Wordwrap(text, width-eventIndent, ""), "\n", "\n"+strings.Repeat(" ", eventIndent))
}

func eventStyle(kind string) lipgloss.Style {
	switch kind {
	case "killed", "ended", "frozen", "ejected":
		return bad
	case "draining", "drained", "stopped", "breaker":
		return fair
	case "up", "ready", "started", "resumed", "restored":
		return good
	case "begins", "ends":
		return bold
	}
	return faint
}

// Show implements demo.View.
func (v *demoView) Show(s demo.Snapshot) {
	v.last = s
	switch {
	case !v.tables || s.Final:
	case v.out.Terminal():
		v.out.Draw(nil, v.block())
	case s.Elapsed > 0 && time.Since(v.shown) >= tableEvery:
		v.shown = time.Now()
		lines := append(append([]string{""}, v.tableLines()...), "")
		if trials := v.trials(); !slices.Equal(trials, v.tried) {
			v.tried = trials
			for _, t := range trials {
				lines = append(lines, "try:  "+t.text)
			}
			lines = append(lines, "")
		}
		v.out.Print(lines...)
	}
}

// end prints the last lines.
func (v *demoView) end(sum demo.Summary) {
	v.out.Print(append([]string{""}, v.tableLines()...)...)
	failed := good.Render("none failed")
	if sum.Errors > 0 {
		failed = bad.Render(table.Count(sum.Errors) + " failed")
	}
	v.out.Print("", fmt.Sprintf("%s calls in %.1f s, %s; %s killed, %d restarted.",
		table.Count(sum.Calls), sum.Seconds, failed, plural(sum.Killed, "instance"), sum.Restarts-sum.Killed))
}

// block is the part that is redrawn: the table, and suggested commands.
func (v *demoView) block() []string {
	if len(v.last.Rows) == 0 {
		return nil
	}
	lines := append([]string{""}, v.tableLines()...)
	step := ""
	switch {
	case v.last.Step != "":
		step = bold.Render("Now   ") + v.last.Step
	case v.last.Last != "":
		step = faint.Render("Last  ") + v.last.Last
	}
	if step != "" {
		lines = append(lines, "", step)
	}
	lines = append(lines, "")
	for i, t := range v.trials() {
		label := t.label
		if i == 0 {
			label = "In another terminal:"
		}
		lines = append(lines, faint.Render(fmt.Sprintf("%-20s  ", label))+bold.Render(t.text))
	}
	return append(lines, faint.Render("Ctrl-C ends the demo."))
}

// trial is a line that a user can paste.
type trial struct {
	text  string
	label string // of an address, which is not a command
}

// trials returns the lines that call the services in different ways.
func (v *demoView) trials() []trial {
	anser, where := invocation(), ""
	if v.last.Registry != target.DefaultRegistry {
		where = " --registry " + v.last.Registry
	}
	const message = `'{"A": 7, "B": 8}'`
	at := v.last.Address
	list := []trial{
		{text: anser + " ls" + where},
		{text: anser + " call arith Arith.Mul " + message + where},
		{text: "curl http://" + at + "/arith/Arith.Mul -d " + message},
		{text: "grpcurl -plaintext -d " + message + " " + at + " Arith/Mul"},
		{text: anser + " top" + where},
		{text: anser + " tail arith -n 10" + where},
		{text: anser + " replay " + filepath.Join(v.last.Record, "arith-1") + " --to arith --since 10s --speed 0" + where},
	}
	if v.last.Debug != "" {
		list = append(list, trial{text: anser + " explain arith Arith.Mul --from " + v.last.Debug})
	}
	if v.last.Console != "" {
		list = append(list, trial{text: v.last.Console, label: "The console:"})
	}
	return append(list, []trial{
		{text: "http://" + at + "/openapi", label: "In a browser:"},
		{text: "http://" + at + "/mcp", label: "For agents:"},
		{text: v.last.Admin, label: "Admin page:"},
		{text: v.last.Metrics, label: "Metrics:"},
	}...)
}

// tableLines returns the table with a line for the total.
func (v *demoView) tableLines() []string {
	right := func(title string) table.Column { return table.Column{Title: title, Right: true, Least: len("1.23 ms")} }
	t := table.Table{Columns: []table.Column{
		{Title: "SERVICE"},
		{Title: "INSTANCE"},
		{Title: "ADDRESS", Optional: true},
		{Title: "STATE", Least: len("draining")},
		right("CALLS/S"), right("P50"), right("P99"), right("ERRORS"),
	}}
	service := ""
	for _, r := range v.last.Rows {
		name := r.Service
		if name == service && v.out.Terminal() {
			name = ""
		}
		service = r.Service
		address, p50, p99 := orDash(r.Address), "-", "-"
		if r.P99 > 0 {
			p50, p99 = table.Duration(r.P50), table.Duration(r.P99)
		}
		t.Add(name, r.Instance, address, eventStyle(r.State).Render(r.State), table.Rate(r.Rate), p50, p99, errorCount(r.Errors))
	}
	s := &v.last
	t.Add(bold.Render("all"), "", "", fmt.Sprintf("%.0f s", s.Elapsed.Seconds()),
		table.Rate(s.Rate), table.Duration(s.P50), table.Duration(s.P99), errorCount(s.Errors))
	width, _ := v.out.Size()
	return t.Lines(width)
}

func errorCount(n int64) string {
	if n > 0 {
		return bad.Render(table.Count(n))
	}
	return "0"
}

// invocation returns the command by which this program can be run in another terminal.
func invocation() string {
	self, err := os.Executable()
	if err != nil {
		return "anser"
	}
	if found, err := exec.LookPath("anser"); err == nil && sameFile(found, self) {
		return "anser"
	}
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, self); err == nil && len(rel) < len(self) {
			return "." + string(filepath.Separator) + rel
		}
	}
	return self
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

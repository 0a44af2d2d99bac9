package top

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/anser-rpc/anser/cmd/anser/internal/table"
	"github.com/anser-rpc/anser/internal/printable"
	"github.com/anser-rpc/anser/telemetry"
)

// Show selects what is shown.
type Show struct {
	Processes bool   // instead of methods
	Order     string // one of Orders
	Filter    string // part of a name
	Process   string // address of the page of a process whose methods and slow calls are shown
	Method    *Method
	Call      *Opened // one call, whatever else is selected
}

var (
	faint = lipgloss.NewStyle().Faint(true)
	bold  = lipgloss.NewStyle().Bold(true)
	bad   = lipgloss.NewStyle().Foreground(lipgloss.Red)
	here  = lipgloss.NewStyle().Reverse(true)
)

// Lines returns a look as lines of text, none wider than width; 0 means any width. rows are the
// places of the lines that can be selected.
func (l *Look) Lines(s Show, width int) (lines []string, rows []int) {
	lines = append(lines, l.summary(), "")
	if s.Call != nil {
		return append(lines, s.Call.lines(width)...), nil
	}
	if p := l.process(s.Process); p != nil {
		return l.processLines(lines, p, s, width)
	}
	if s.Method != nil {
		lines = append(lines, bold.Render(Printable(s.Method.Name))+faint.Render("  "+Printable(s.Method.Side)+" "+Printable(s.Method.Target)))
		t := processTable(sortedProcesses(l.with(s.Method), s.Order, s.Filter))
		lines, rows = addRows(lines, rows, t.Lines(width), len(t.Rows))
		lines = append(lines, "", faint.Render("Latest slow calls and failures"))
		return callLines(lines, rows, l.calls(s), width)
	}
	if err := l.Silent(); err != nil && !s.Processes {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			lines = append(lines, bad.Render(line))
		}
		return lines, nil
	}
	var t table.Table
	if s.Processes {
		t = processTable(sortedProcesses(l.Processes, s.Order, s.Filter))
	} else {
		t = methodTable(sortedMethods(l.Methods, s.Order, s.Filter))
	}
	return addRows(lines, rows, t.Lines(width), len(t.Rows))
}

// addRows adds a table, whose rows can be selected, under its title.
func addRows(lines []string, rows []int, t []string, n int) ([]string, []int) {
	for i := range n {
		rows = append(rows, len(lines)+1+i)
	}
	return append(lines, t...), rows
}

// keys identify the rows that can be selected, in their order.
func (l *Look) keys(s Show) (list []string) {
	switch {
	case s.Call != nil:
		return nil
	case l.process(s.Process) != nil:
	case s.Processes || s.Method != nil:
		processes := l.Processes
		if s.Method != nil {
			processes = l.with(s.Method)
		}
		for _, p := range sortedProcesses(processes, s.Order, s.Filter) {
			list = append(list, p.Address)
		}
	default:
		for _, m := range sortedMethods(l.Methods, s.Order, s.Filter) {
			list = append(list, m.Side+" "+m.Target+" "+m.Name)
		}
	}
	for _, c := range l.calls(s) {
		list = append(list, c.key())
	}
	return list
}

// summary is the first line.
func (l *Look) summary() string {
	silent := 0
	var all Figures
	cpu, memory, inFlight := 0.0, uint64(0), int64(0)
	for i := range l.Processes {
		p := &l.Processes[i]
		if p.Error != "" {
			silent++
		}
		cpu, memory, inFlight = cpu+p.CPU, memory+p.Memory, inFlight+p.InFlight
		for j := range p.Methods {
			if p.Methods[j].Side == "server" {
				all.add(&p.Methods[j].Figures)
			}
		}
	}
	processes := plural(len(l.Processes), "process")
	if silent > 0 {
		processes += ", " + bad.Render(fmt.Sprintf("%d silent", silent))
	}
	text := fmt.Sprintf("%s  %s  served %s/s  failed %s  p50 %s  p99 %s  in flight %d  CPU %.0f %%  memory %s",
		bold.Render(l.Time.Format(time.TimeOnly)), processes, table.Rate(all.Rate), failures(&all), duration(all.P50), duration(all.P99),
		inFlight, 100*cpu, Bytes(memory))
	if l.Window == 0 {
		text += "  " + faint.Render("rates follow")
	}
	return text
}

// Silent returns why no process has answered, or nil if one has.
func (l *Look) Silent() error {
	var errs []error
	for i := range l.Processes {
		if l.Processes[i].Error == "" {
			return nil
		}
		errs = append(errs, errors.New(Printable(l.Processes[i].Error)))
	}
	if n := len(errs); n > shownErrors {
		errs = append(errs[:shownErrors], fmt.Errorf("… and %d more", n-shownErrors))
	}
	return errors.Join(errs...)
}

const shownErrors = 5 // of processes that do not answer

func (l *Look) process(address string) *Process {
	for i := range l.Processes {
		if address != "" && l.Processes[i].Address == address {
			return &l.Processes[i]
		}
	}
	return nil
}

// with returns the processes that have a method, with its figures.
func (l *Look) with(m *Method) (list []Process) {
	for _, p := range l.Processes {
		for i := range p.Methods {
			if o := &p.Methods[i]; o.Side == m.Side && o.Name == m.Name && o.Target == m.Target {
				p.Figures = o.Figures
				list = append(list, p)
			}
		}
	}
	return list
}

// processLines shows one process.
func (l *Look) processLines(lines []string, p *Process, s Show, width int) (_ []string, rows []int) {
	lines = append(lines, bold.Render(Printable(p.Name))+faint.Render("  "+Printable(p.Address+"  "+strings.Join(p.Services, ", "))))
	if p.Error != "" {
		return append(lines, bad.Render(Printable(p.Error))), nil
	}
	lines = append(lines, fmt.Sprintf("CPU %.0f %%  memory %s  %d goroutines  %s  %d in flight  %d waiting",
		100*p.CPU, Bytes(p.Memory), p.Goroutines, plural(p.Conns, "connection"), p.InFlight, p.Waiting), "")
	t := methodTable(sortedMethods(p.Methods, s.Order, s.Filter))
	lines = append(lines, t.Lines(width)...)
	lines = append(lines, "", faint.Render("Latest slow calls"))
	calls := l.calls(s)
	slow, _ := p.latest()
	lines, rows = callLines(lines, rows, calls[:len(slow)], width)
	lines = append(lines, "", faint.Render("Latest failures"))
	return callLines(lines, rows, calls[len(slow):], width)
}

const shownCalls = 8

// callLines adds a table of calls, which can be selected.
func callLines(lines []string, rows []int, calls []Opened, width int) ([]string, []int) {
	if len(calls) == 0 {
		return append(lines, "none"), rows
	}
	var t table.Table
	for _, title := range []string{"ENDED", "SIDE", "METHOD", "RESULT", "DURATION", "QUEUE", "DECODE", "HANDLER", "ENCODE", "PEER", "TRACE"} {
		c := table.Column{Title: title}
		switch title {
		case "DURATION", "QUEUE", "DECODE", "HANDLER", "ENCODE":
			c.Right = true
		case "PEER", "TRACE":
			c.Optional = true
		}
		t.Columns = append(t.Columns, c)
	}
	for i := range calls {
		c := calls[i].Call
		t.Add(c.Time.Local().Format("15:04:05.000"), Printable(c.Side), Printable(c.Method), Result(c), duration(c.Duration), duration(c.Queue), duration(c.Decode),
			duration(c.Handle), duration(c.Encode), Printable(c.Peer), Printable(c.TraceID))
	}
	return addRows(lines, rows, t.Lines(width), len(t.Rows))
}

// Result returns how a call ended.
func Result(c *telemetry.Call) string {
	if c.Code == 0 {
		return "ok"
	}
	return bad.Render(fmt.Sprintf("%s, %s", c.Code, c.Outcome))
}

// optional is a column of numbers that a narrow terminal does not show.
func optional(title string) table.Column {
	return table.Column{Title: title, Right: true, Optional: true, Least: len("1.23 ms")}
}

func methodTable(list []Method) table.Table {
	right := func(title string) table.Column { return table.Column{Title: title, Right: true, Least: len("1.23 ms")} }
	t := table.Table{Columns: []table.Column{
		{Title: "METHOD"}, {Title: "SIDE", Optional: true}, right("CALLS/S"), right("FAILED/S"), optional("P50"), right("P99"), optional("QUEUE"), {Title: "TARGET", Optional: true},
	}}
	for i := range list {
		m := &list[i]
		queue := "-"
		if m.Side == "server" {
			queue = duration(m.Queue)
		}
		t.Add(Printable(m.Name), Printable(m.Side), table.Rate(m.Rate), failures(&m.Figures), duration(m.P50), duration(m.P99), queue, Printable(m.Target))
	}
	return t
}

func processTable(list []Process) table.Table {
	right := func(title string) table.Column { return table.Column{Title: title, Right: true, Least: len("1.23 ms")} }
	t := table.Table{Columns: []table.Column{
		{Title: "INSTANCE"},
		{Title: "SERVICES"},
		right("CALLS/S"), right("FAILED/S"), optional("P50"), right("P99"), optional("IN FLIGHT"), optional("QUEUE"), optional("CPU"), optional("MEMORY"),
		{Title: "ADMIN PAGE", Optional: true},
	}}
	for i := range list {
		p := &list[i]
		if p.Error != "" {
			t.Add(Printable(p.Name), bad.Render(Printable(p.Error)))
			continue
		}
		t.Add(Printable(p.Name), Printable(strings.Join(p.Services, ", ")), table.Rate(p.Rate), failures(&p.Figures), duration(p.P50), duration(p.P99),
			fmt.Sprint(p.InFlight), duration(p.Queue), fmt.Sprintf("%.0f %%", 100*p.CPU), Bytes(p.Memory), Printable(p.Address))
	}
	return t
}

func failures(f *Figures) string {
	if f.Failed > 0 {
		return bad.Render(table.Rate(f.Failed))
	}
	return "0"
}

func duration(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return table.Duration(d)
}

// Bytes formats a number of bytes.
func Bytes(n uint64) string {
	f := float64(n)
	for _, unit := range [...]string{"B", "KiB", "MiB"} {
		if f < 1024 {
			return fmt.Sprintf("%.0f %s", f, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%.1f GiB", f)
}

func plural(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// longest is the maximum number of characters of a text that a process says.
const longest = 400

// Printable makes what a process says safe for the terminal. A long text is cut.
func Printable(s string) string { return printable.Short(s, longest) }

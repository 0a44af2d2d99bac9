package top

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// press presses keys.
func press(m *model, keys ...string) {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k}
		switch k {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "tab":
			msg = tea.KeyPressMsg{Code: tea.KeyTab}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "space":
			msg = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
		default:
			msg.Code = []rune(k)[0]
		}
		m.Update(msg)
	}
}

// The keys lead to the instances of a method, to one of them, and back; they filter, sort and
// pause.
func TestKeys(t *testing.T) {
	figures := Figures{Rate: 3}
	look := &Look{Time: time.Now(), Window: time.Second, Processes: []Process{
		{Address: "x:1", Name: "arith-1", Figures: figures, Methods: []Method{{Side: "server", Name: "Arith.Mul", Figures: figures}}},
		{Address: "x:2", Name: "posts-1", Methods: []Method{{Side: "server", Name: "Posts.Query"}}},
	}}
	look.Methods = merge(look.Processes)
	m := &model{show: Show{Order: "rate"}, look: look, width: 120, height: 12}
	shows := func(want string) {
		t.Helper()
		if text := ansi.Strip(strings.Join(m.lines(), "\n")); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	shows("Posts.Query")
	press(m, "enter")
	shows("arith-1")
	press(m, "enter")
	shows("Latest slow calls")
	press(m, "esc", "esc", "tab", "down")
	shows("INSTANCE")
	press(m, "enter")
	shows("posts-1  x:2")
	press(m, "tab", "/", "m", "u", "l")
	shows("/mul_")
	if text := strings.Join(m.lines(), "\n"); strings.Contains(text, "Posts.Query") {
		t.Errorf("the filter does nothing:\n%s", text)
	}
	press(m, "enter", "s", "space")
	shows("sorted by failed, with mul")
	shows("paused")
	m.Update(looked{look: &Look{Window: time.Second}})
	shows("Arith.Mul") // a paused screen stays
	for _, line := range m.lines() {
		if len([]rune(line)) > 400 {
			t.Errorf("a long line: %q", line)
		}
	}
	press(m, "space")
	if got := len(m.lines()); got != m.height {
		t.Errorf("%d lines on a screen of %d", got, m.height)
	}
}

// A slow or failed call is opened from its method or its process, and has its parts in time.
func TestOpenCall(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	slow := &telemetry.Call{
		Time: at, Side: "server", Method: "Arith.Mul", Duration: 10 * time.Millisecond, Queue: 2 * time.Millisecond, Handle: 7 * time.Millisecond,
		Peer: "10.0.0.9:1", Identity: "shop",
	}
	failed := &telemetry.Call{
		Time: at.Add(time.Second), Side: "client", Target: "etcd://h/posts", Method: "Posts.Query", Duration: 5 * time.Millisecond, Code: anser.Unavailable,
		TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Message: "gone\x1b[2J",
		Attempts: []anser.AttemptInfo{{Address: "10.0.0.1:1", Code: anser.Unavailable, Duration: 3 * time.Millisecond, Message: "no\x1b[2J"}},
	}
	look := &Look{Time: time.Now(), Window: time.Second, Processes: []Process{
		{Address: "x:1", Name: "arith-1", Methods: []Method{{Side: "server", Name: "Arith.Mul", Figures: Figures{Rate: 3}}}, Slow: []*telemetry.Call{slow}, Failures: []*telemetry.Call{failed}},
		{Address: "x:2", Name: "arith-2", Methods: []Method{{Side: "server", Name: "Arith.Mul"}}},
	}}
	look.Methods = merge(look.Processes)
	find := func(context.Context) ([]Source, error) { return nil, errors.New("the registry is away") }
	m := &model{ctx: t.Context(), watcher: &Watcher{Find: find}, show: Show{Order: "rate"}, look: look, width: 120, height: 40}
	shows := func(wants ...string) {
		t.Helper()
		text := strings.Join(m.lines(), "\n")
		for _, want := range wants {
			if !strings.Contains(ansi.Strip(text), want) {
				t.Errorf("no %q in\n%s", want, ansi.Strip(text))
			}
		}
		if strings.Contains(text, "\x1b[2J") {
			t.Errorf("a process controls the terminal: %q", text)
		}
	}
	press(m, "enter")
	shows("arith-2", "Latest slow calls and failures", "10.0.0.9:1")
	press(m, "down", "down", "enter") // after the two processes
	shows("server of arith-1", "queue     2.00 ms", "handler   7.00 ms", "rest      1.00 ms", "identity shop", "The call has no trace")
	press(m, "esc")
	if shows("Latest slow calls and failures"); m.cursor != 2 {
		t.Errorf("the cursor is at %d after the call", m.cursor)
	}
	press(m, "esc", "tab", "enter", "down")
	shows("Latest failures")
	_, ask := m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	shows("client of arith-1", "unavailable", "attempt 1 at 10.0.0.1:1", "3.00 ms", "rest", "Asking the processes for trace 4bf9")
	m.Update(ask())
	shows("the registry is away")
	m.Update(traced{m.show.Call, &Trace{ID: failed.TraceID, Duration: failed.Duration, Calls: []TraceCall{{Process: "arith-1", Call: failed}}}, nil})
	shows("1 call in 1 process", "TIMELINE")
	m.Update(looked{look: look})
	shows("1 call in 1 process")                 // the call stays when the look is renewed
	for _, width := range []int{1, 20, 40, 80} { // a terminal is resized
		m.Update(tea.WindowSizeMsg{Width: width, Height: 10})
		lines := m.lines()
		for _, line := range lines {
			if ansi.StringWidth(line) > width {
				t.Errorf("%d columns on %d: %q", ansi.StringWidth(line), width, line)
			}
		}
		if len(lines) != 10 {
			t.Errorf("%d lines on 10", len(lines))
		}
	}
}

// The cursor stays at its row when the order changes, and at its place when the row is gone.
func TestCursorStaysAtItsRow(t *testing.T) {
	look := func(rates ...float64) *Look {
		l := &Look{Window: time.Second}
		for i, rate := range rates {
			l.Methods = append(l.Methods, Method{Side: "server", Name: string(rune('A' + i)), Figures: Figures{Rate: rate, P99: time.Duration(10 - i)}})
		}
		return l
	}
	m := &model{show: Show{Order: "rate"}, look: look(3, 2, 1), width: 80, height: 12}
	at := func(want string) {
		t.Helper()
		m.lines()
		if rows := m.look.keys(m.show); m.cursor >= len(rows) || rows[m.cursor] != "server  "+want {
			t.Errorf("the cursor is at %d of %q, want %s", m.cursor, rows, want)
		}
	}
	m.Update(looked{look: look(1, 3, 2)})
	at("B") // the first row, until the user chooses one
	m.Update(looked{look: look(3, 2, 1)})
	press(m, "down")
	at("B")
	m.Update(looked{look: look(1, 2, 3)})
	at("B")
	m.Update(looked{look: look(3, 1, 2)})
	at("B")
	press(m, "s", "s") // by p99
	at("B")
	m.Update(looked{look: look(1)})
	at("A")
}

// A terminal of 40 columns shows the names of methods, and rates, failures and the 99th
// percentile, in full.
func TestNarrowTerminal(t *testing.T) {
	figures := Figures{Rate: 12345, Failed: 12, P50: time.Millisecond, P99: 123 * time.Millisecond}
	look := &Look{Time: time.Now(), Window: time.Second, Processes: []Process{
		{Address: "http://10.0.0.1:8971/", Name: "arith-1", Services: []string{"arith"}, Figures: figures, Methods: []Method{{Side: "server", Name: "Arith.Mul", Figures: figures}}},
	}}
	look.Methods = look.Processes[0].Methods
	lines, rows := look.Lines(Show{Order: "rate"}, 40)
	row := ansi.Strip(lines[rows[0]])
	for _, want := range []string{"Arith.Mul", "12,345", " 12 ", "123 ms"} {
		if !strings.Contains(row, want) || strings.Contains(row, "…") {
			t.Errorf("no %q in %q", want, row)
		}
	}
}

package top

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
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
	lines, first, _ := look.Lines(Show{Order: "rate"}, 40)
	row := ansi.Strip(lines[first])
	for _, want := range []string{"Arith.Mul", "12,345", " 12 ", "123 ms"} {
		if !strings.Contains(row, want) || strings.Contains(row, "…") {
			t.Errorf("no %q in %q", want, row)
		}
	}
}

package top

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// Run shows looks on a terminal until the user quits or ctx is done.
func Run(ctx context.Context, w *Watcher, every time.Duration, show Show, in io.Reader, out io.Writer) error {
	m := &model{ctx: ctx, watcher: w, every: every, show: show, width: 80, height: 24}
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if m.failed != nil {
		return m.failed
	}
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil //nits:ignore nilerr the user has ended it
	}
	return err
}

// model is the state of the screen.
type model struct {
	ctx     context.Context
	watcher *Watcher
	every   time.Duration
	show    Show
	look    *Look
	failed  error // of the first look
	trouble error // of the last one
	paused  bool
	typing  bool // the filter
	cursor  int
	moved   bool // the user has chosen the row of the cursor
	under   int  // the cursor below a call that is shown
	top     int  // first line that is shown
	width   int
	height  int
}

// looked is the message with a new look.
type looked struct {
	look *Look
	err  error
}

// due is the message that it is time for the next look.
type due struct{}

func (m *model) ask() tea.Msg {
	look, err := m.watcher.Look(m.ctx)
	return looked{look, err}
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd { return m.ask }

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case looked:
		m.trouble = msg.err
		if msg.err == nil && !m.paused {
			m.keep(func() { m.look = msg.look })
		} else if m.look == nil && msg.err != nil {
			m.failed = msg.err
			return m, tea.Quit
		}
		wait := m.every
		if m.look != nil && m.look.Window == 0 {
			wait = min(wait, time.Second)
		}
		return m, tea.Tick(wait, func(time.Time) tea.Msg { return due{} })
	case due:
		return m, m.ask
	case traced:
		if msg.of.Trace = msg.trace; msg.err != nil {
			msg.of.Trouble = msg.err.Error()
		}
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if m.typing {
			m.typeFilter(msg)
			return m, nil
		}
		return m, m.press(msg.String())
	}
	return m, nil
}

// keep makes a change, and moves the cursor to the row at which the user has put it.
func (m *model) keep(change func()) {
	row := ""
	if m.look != nil && m.moved {
		if rows := m.look.keys(m.show); m.cursor >= 0 && m.cursor < len(rows) {
			row = rows[m.cursor]
		}
	}
	change()
	if at := slices.Index(m.look.keys(m.show), row); row != "" && at >= 0 {
		m.cursor = at
	}
}

// typeFilter changes the filter.
func (m *model) typeFilter(k tea.KeyPressMsg) {
	switch k.String() {
	case "enter":
		m.typing = false
	case "esc", "ctrl+c":
		m.typing, m.show.Filter = false, ""
	case "backspace":
		if r := []rune(m.show.Filter); len(r) > 0 {
			m.show.Filter = string(r[:len(r)-1])
		}
	default:
		m.show.Filter += k.Key().Text
	}
	m.first()
}

// press does what a key says.
func (m *model) press(key string) tea.Cmd {
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "tab":
		m.show.Processes = !m.show.Processes
		m.show.Process, m.show.Method, m.show.Call = "", nil, nil
		m.first()
	case "s":
		if m.look == nil {
			return nil
		}
		m.keep(func() { m.show.Order = Orders[(slices.Index(Orders[:], m.show.Order)+1)%len(Orders)] })
	case "/":
		m.typing = true
	case "space", "p":
		m.paused = !m.paused
	case "up", "k":
		m.move(m.cursor - 1)
	case "down", "j":
		m.move(m.cursor + 1)
	case "pgup":
		m.move(m.cursor - m.height/2)
	case "pgdown":
		m.move(m.cursor + m.height/2)
	case "home", "g":
		m.first()
	case "enter":
		return m.enter()
	case "esc", "backspace", "left":
		m.back()
	}
	return nil
}

// move puts the cursor to a row.
func (m *model) move(row int) { m.cursor, m.moved = row, true }

// first puts the cursor to the first row, whichever that is.
func (m *model) first() { m.cursor, m.top, m.moved = 0, 0, false }

// enter shows what the row under the cursor consists of.
func (m *model) enter() tea.Cmd {
	if m.look == nil || m.show.Call != nil {
		return nil
	}
	calls := m.look.calls(m.show)
	if at := m.cursor - (len(m.look.keys(m.show)) - len(calls)); at >= 0 && at < len(calls) {
		return m.open(&calls[at])
	}
	switch {
	case m.show.Process != "":
		return nil
	case m.show.Processes || m.show.Method != nil:
		list := m.look.Processes
		if m.show.Method != nil {
			list = m.look.with(m.show.Method)
		}
		if list = sortedProcesses(list, m.show.Order, m.show.Filter); m.cursor < len(list) {
			m.show.Process = list[m.cursor].Address
		}
	default:
		if list := sortedMethods(m.look.Methods, m.show.Order, m.show.Filter); m.cursor < len(list) {
			m.show.Method = &list[m.cursor]
		}
	}
	m.show.Filter = ""
	m.first()
	return nil
}

// traced is the message with the trace of a call that was opened.
type traced struct {
	of    *Opened
	trace *Trace
	err   error
}

// open shows a call, and asks for its trace.
func (m *model) open(o *Opened) tea.Cmd {
	m.show.Call, m.under = o, m.cursor
	m.first()
	if o.Call.TraceID == "" {
		return nil
	}
	ctx, w := m.ctx, m.watcher
	return func() tea.Msg {
		t, err := w.Trace(ctx, o.Call.TraceID)
		return traced{o, t, err}
	}
}

func (m *model) back() {
	switch {
	case m.show.Call != nil:
		m.show.Call = nil
		m.first()
		m.move(m.under)
		return
	case m.show.Process != "":
		m.show.Process = ""
	case m.show.Method != nil:
		m.show.Method = nil
	default:
		m.show.Filter = ""
	}
	m.first()
}

// View implements [tea.Model].
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "anser top"
	return v
}

const keys = "tab instances/methods  enter open  esc back  s sort  / filter  space pause  q quit"

// lines returns the lines of the screen.
func (m *model) lines() []string {
	if m.look == nil {
		return []string{"Asking the processes …"}
	}
	lines, rows := m.look.Lines(m.show, m.width)
	room := max(m.height-1, 1)
	if len(rows) > 0 {
		m.cursor = min(max(m.cursor, 0), len(rows)-1)
		if at := rows[m.cursor]; at < len(lines) {
			text := ansi.Strip(lines[at])
			lines[at] = here.Render(text + strings.Repeat(" ", max(m.width-ansi.StringWidth(text), 0)))
			m.top = min(m.top, m.cursor)
			m.top = max(m.top, at-room+1)
		}
	} else {
		m.cursor = min(max(m.cursor, 0), max(len(lines)-room, 0))
		m.top = m.cursor
	}
	if m.top > 0 && m.top < len(lines) {
		lines = append(lines[:1:1], lines[m.top+1:]...)
	}
	lines = lines[:min(len(lines), room)]
	for len(lines) < room {
		lines = append(lines, "")
	}
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "…")
	}
	return append(lines, ansi.Truncate(m.footer(), m.width, "…"))
}

func (m *model) footer() string {
	switch {
	case m.typing:
		return "/" + Printable(m.show.Filter) + "_"
	case m.trouble != nil:
		return bad.Render(Printable(m.trouble.Error()))
	}
	text := "sorted by " + m.show.Order
	if m.show.Filter != "" {
		text += ", with " + Printable(m.show.Filter)
	}
	if m.paused {
		text = bold.Render("paused") + "  " + text
	}
	return text + faint.Render("  "+keys)
}

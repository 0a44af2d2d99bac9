package command_test

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/anser-rpc/anser/cmd/anser/internal/command"
)

// pseudoTerminal is a terminal with what a program has written to it.
type pseudoTerminal struct {
	file   *os.File // for the program
	screen *os.File // the other end

	mu    sync.Mutex // guards shown
	shown bytes.Buffer
}

func newPseudoTerminal(t *testing.T, width, height uint16) *pseudoTerminal {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pseudoTerminal{file: file, screen: screen}
	p.resize(t, width, height)
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := screen.Read(buffer)
			p.mu.Lock()
			p.shown.Write(buffer[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		file.Close()
		<-read // the other end reads an error once no program has the terminal open
		screen.Close()
	})
	return p
}

// resize changes the size, and says so, as a terminal does.
func (p *pseudoTerminal) resize(t *testing.T, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(p.file.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(os.Getpid(), syscall.SIGWINCH)
}

// text returns what was written since the last forget.
func (p *pseudoTerminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

func (p *pseudoTerminal) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown.Reset()
}

// press writes keys, and waits until the program has written all of the texts.
func (p *pseudoTerminal) press(t *testing.T, keys string, want ...string) {
	t.Helper()
	p.screen.WriteString(keys)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		missing := ""
		for _, w := range want {
			if !strings.Contains(p.text(), w) {
				missing = w
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %q the terminal does not show %q:\n%q", keys, missing, p.text())
		}
	}
}

// colour matches a sequence that sets one.
var colour = regexp.MustCompile("\x1b\\[(\\d+;)*[349][0-9](;|m)")

// anser top is a screen on terminals of several kinds, follows their size, leaves them as they
// were, and has no colours where none are wanted.
func TestTopOnTerminals(t *testing.T) {
	address := adminPage(t)
	for name, test := range map[string]struct {
		term, noColor string
		colours       bool
	}{
		"xterm":             {"xterm", "", true},
		"xterm-256color":    {"xterm-256color", "", true},
		"NO_COLOR":          {"xterm-256color", "1", false},
		"vt100":             {"vt100", "", true},
		"a name of its own": {"unheard-of", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", test.term)
			t.Setenv("COLORTERM", "")
			if t.Setenv("NO_COLOR", test.noColor); test.noColor == "" {
				os.Unsetenv("NO_COLOR")
			}
			p := newPseudoTerminal(t, 100, 24)
			ended := make(chan int, 1)
			go func() {
				ended <- command.Run(t.Context(), []string{"top", address, "127.0.0.1:1", "--every", "200ms"}, p.file, p.file, p.file)
			}()
			p.press(t, "", "Arith.Mul", "1 silent", "q quit")
			p.press(t, "\t", "INSTANCE", "does not answer")
			p.forget()
			p.resize(t, 60, 10)
			// The signal of the new size may arrive after a key that is pressed now. For a new
			// size the program writes the whole screen again, with colours; for a key only what
			// changes.
			p.press(t, "", "INSTANCE", "1 silent")
			p.press(t, "\t", "Arith.Mul")
			p.press(t, "q")
			if code := <-ended; code != 0 {
				t.Errorf("exit code %d:\n%q", code, p.text())
			}
			p.press(t, "", "\x1b[?1049l", "\x1b[?25h") // the screen before, and the cursor
			if got := colour.MatchString(p.text()); got != test.colours {
				t.Errorf("colours: %v, want %v:\n%q", got, test.colours, p.text())
			}
		})
	}
}

// A terminal that cannot move its cursor gets lines, without any sequence.
func TestTopOnDumbTerminal(t *testing.T) {
	t.Setenv("TERM", "dumb")
	address := adminPage(t)
	p := newPseudoTerminal(t, 100, 24)
	if code := command.Run(t.Context(), []string{"top", address, "--once", "--every", "200ms"}, p.file, p.file, p.file); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.press(t, "", "Arith.Mul")
	if strings.Contains(p.text(), "\x1b") {
		t.Errorf("%q", p.text())
	}
}

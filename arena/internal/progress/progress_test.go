package progress_test

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/anser-rpc/anser/arena/internal/progress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLines(t *testing.T) {
	var b bytes.Buffer
	p := progress.New(&b, 2)
	p.Begin("one")
	p.Note("it took %d s", 5)
	p.Step()
	p.End()
	if b.String() != "it took 5 s\n" {
		t.Errorf("%q", b.String())
	}
}

// On a terminal there is a bar below the lines that stay.
func TestBar(t *testing.T) {
	t.Setenv("TERM", "xterm")
	terminal, screen := pty(t)
	p := progress.New(terminal, 3)
	p.Begin("measure this")
	p.Note("a line that stays")
	p.Step()
	shown := ""
	for deadline := time.Now().Add(time.Minute); !strings.Contains(shown, "1/3") || !strings.Contains(shown, "measure this"); {
		if time.Now().After(deadline) {
			t.Fatalf("the terminal shows %q", shown)
		}
		buffer := make([]byte, 4096)
		n, err := screen.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		shown += string(buffer[:n])
	}
	if !strings.Contains(shown, "a line that stays") {
		t.Errorf("the terminal shows %q", shown)
	}
	p.End()
}

// pty returns a terminal and the other end of it.
func pty(t *testing.T) (terminal, screen *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}); err != nil {
		t.Fatal(err)
	}
	return terminal, screen
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asCommand makes the test binary behave like the command. The tests start it as a process, which
// starts further ones.
const asCommand = "ANSER_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// process is a run of the command.
type process struct {
	*exec.Cmd
	t      *testing.T
	stdout io.Closer
	out    *bufio.Reader
	errOut bytes.Buffer // may be read after the end
	family *os.File     // ends when the process and all its descendants have ended
}

// patience is the timeout of operations in tests, and the maximum lifetime of a test's process.
// The machine may be busy.
const patience = 5 * time.Minute

// start starts the command. Its temporary files are in the directory tmp.
func start(t *testing.T, tmp string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, os.Args[0], args...), t: t}
	// The race detector makes every process wait a second at its end unless it is told not to.
	p.Env = append(os.Environ(), asCommand+"=1", "ANSER_REGISTRY=", "TMPDIR="+tmp, "GORACE=atexit_sleep_ms=0")
	p.Stderr = &p.errOut
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout, p.out = out, bufio.NewReader(out)
	family, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.family, p.ExtraFiles = family, []*os.File{end}
	t.Cleanup(func() { family.Close() })
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	end.Close()
	return p
}

// line returns the next line of the output that contains the word.
func (p *process) line(word string) string {
	p.t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		if strings.Contains(line, word) {
			return line
		}
		if err != nil {
			code := p.end() // which completes errOut
			p.t.Fatalf("%q was not printed: %v, exit code %d\n%s", word, err, code, p.errOut.String())
		}
	}
}

// wait waits for the end of the process and all its descendants, and returns the rest of the
// output and the exit code.
func (p *process) wait() (string, int) {
	p.t.Helper()
	rest, err := io.ReadAll(p.out)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(rest), p.end()
}

// end is like wait, after the output was read to its end or closed, and returns the exit code.
func (p *process) end() int {
	p.t.Helper()
	p.Wait()
	p.family.SetReadDeadline(time.Now().Add(patience))
	if _, err := p.family.Read(make([]byte, 1)); err != io.EOF {
		p.t.Errorf("a process that %q started has not ended: %v", strings.Join(p.Args[1:], " "), err)
	}
	return p.ProcessState.ExitCode()
}

// signal sends a signal and waits.
func (p *process) signal(s os.Signal) (string, int) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

// run runs the command to its end, which must be successful.
func run(t *testing.T, args ...string) string {
	t.Helper()
	if args[0] != "bench" { // a busy machine takes longer
		args = append(args, "--timeout", "2m")
	}
	p := start(t, t.TempDir(), args...)
	out, code := p.wait()
	if code != 0 {
		t.Fatalf("%q ended with %d: %s%s", strings.Join(args, " "), code, out, p.errOut.String())
	}
	return out
}

// expectEmpty checks that the directory is empty.
func expectEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was left behind", e.Name())
	}
}

var terminate = os.Signal(syscall.SIGTERM)

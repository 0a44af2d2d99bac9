package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/internal/testlog"
)

// process is one that a test has started from its own binary.
type process struct {
	t      *testing.T
	role   string
	config config
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr testlog.Buffer
	exited chan struct{} // closed when err is valid
	err    error
}

// readyLine is printed by a process when it is ready.
const readyLine = "ready\n"

// bound is how long anything may take that is not a matter of time. The machine may be busy.
const bound = 60 * time.Second

// start starts a process and waits until it is ready. It is killed when the test ends.
func start(t *testing.T, role string, c config) *process {
	t.Helper()
	p := &process{t: t, role: role, config: c, exited: make(chan struct{})}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	// With the race detector a process would sleep for a second before it ends.
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role, configEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, child, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	p.cmd.Stdout = child
	err = p.cmd.Start()
	child.Close()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(p.cleanup)
	stdout.SetReadDeadline(time.Now().Add(bound))
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != readyLine {
		t.Fatalf("%s said %q when it started: %v\n%s", p, line, err, p.stderr.String())
	}
	return p
}

// ready reports to the test that the process is ready.
func ready() { os.Stdout.WriteString(readyLine) }

// String names the process in messages.
func (p *process) String() string {
	return fmt.Sprintf("%s %d at %s", p.role, p.cmd.Process.Pid, p.config.Address)
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s to %s: %v", s, p, err)
	}
}

// wait waits until the process has ended and returns how: nil for exit code 0.
func (p *process) wait() error {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(bound):
		p.t.Fatalf("%s is still there after %v\n%s", p, bound, p.stderr.String())
	}
	return p.err
}

// drain ends the process as an orchestrator does.
func (p *process) drain() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if err := p.wait(); err != nil {
		p.t.Fatalf("%s was told to drain: %v\n%s", p, err, p.stderr.String())
	}
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	p.wait()
}

func (p *process) cleanup() {
	p.cmd.Process.Kill()
	<-p.exited
	p.stdin.Close()
	text := p.stderr.String()
	if strings.Contains(text, "DATA RACE") {
		p.t.Errorf("%s found a data race", p)
	}
	if p.t.Failed() && text != "" {
		p.t.Logf("%s:\n%s", p, text)
	}
}

// freeAddress returns an address that is reserved until all tests have ended, so that a restarted
// process finds its port free.
func freeAddress() string { return servers.Address(all) }

// eventually waits until f is true, for what happens soon in another process.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", bound, what)
		}
	}
}

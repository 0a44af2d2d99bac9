package servers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// patience is how long a server may take to start on a busy machine.
const patience = 2 * time.Minute

// Process is a server process, which tests may kill and restart. The zero value is not running. It
// needs no goroutine while it runs, so that tests can check for leaked ones.
type Process struct{ cmd *exec.Cmd }

// Start runs a server until Stop, and waits until it serves; serves returns why it does not yet.
// The server's output is appended to the file "log" in cmd.Dir.
func (p *Process) Start(t testing.TB, cmd *exec.Cmd, serves func() error) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(cmd.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	lives, held, err := os.Pipe() // the server holds the other end, which is closed when it ends
	if err != nil {
		t.Fatal(err)
	}
	defer lives.Close()
	cmd.ExtraFiles = []*os.File{held}
	err = cmd.Start()
	held.Close()
	if err != nil {
		t.Fatalf("%v: run scripts/servers, which installs the servers for tests", err)
	}
	p.cmd = cmd
	for deadline := time.Now().Add(patience); ; {
		err := serves()
		if err == nil {
			return
		}
		lives.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, end := lives.Read(make([]byte, 1)); errors.Is(end, io.EOF) {
			err = fmt.Errorf("it has ended: %w", err)
		} else if time.Now().Before(deadline) {
			continue
		}
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("%s does not serve: %v\n%s", cmd, err, text)
	}
}

// Stop kills the server, as in a crash, and waits for its end. If it does not run, Stop does
// nothing.
func (p *Process) Stop() {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.cmd = nil
	}
}

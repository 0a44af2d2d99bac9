// Package child runs the programs of the peers. None outlives the process that starts it.
package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/anser-rpc/anser/internal/tail"
)

// saidBytes is how much of what a process says last is kept.
const saidBytes = 2 << 10

// starts runs every start of a process on one thread that never ends: Linux sends the signal that
// is asked for at the parent's death when the thread dies that started the child, and Go ends
// threads as it likes.
var starts = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range c {
			start()
		}
	}()
	return c
})

// Child is a process. Its methods are safe for concurrent use.
type Child struct {
	cmd    *exec.Cmd
	said   *tail.Buffer
	stdout *os.File
	line   chan []byte // the first line of its output, or closed without one
	read   chan struct{}
	wait   sync.Once
	done   chan struct{}
	err    error // of Wait, set before done is closed
}

// pipeGrace is how long the output may stay open when the process has ended: a descendant may have
// it.
const pipeGrace = time.Second

// Start runs a command, in a group of its own: Ctrl-C reaches this process alone, which ends its
// children in order.
func Start(command []string) (*Child, error) {
	stdout, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	c := &Child{
		cmd: exec.Command(command[0], command[1:]...), said: tail.New(saidBytes), stdout: stdout,
		line: make(chan []byte, 1), read: make(chan struct{}), done: make(chan struct{}),
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.cmd.Stdout, c.cmd.Stderr = w, c.said
	c.cmd.WaitDelay = pipeGrace
	started := make(chan error, 1)
	starts() <- func() { started <- c.cmd.Start() }
	if err := <-started; err != nil {
		stdout.Close()
		return nil, fmt.Errorf("start %s: %w", strings.Join(command, " "), err)
	}
	go c.readLine()
	return c, nil
}

// readLine takes the first line, which is all that a program of a peer says.
func (c *Child) readLine() {
	defer close(c.read)
	r := bufio.NewReaderSize(c.stdout, 64<<10)
	line, err := r.ReadBytes('\n')
	if err == nil || len(line) > 0 {
		c.line <- line
	}
	close(c.line)
	if err == nil {
		io.Copy(io.Discard, r)
	}
}

// PID returns the number of the process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Line is where the first line of the output arrives. It is closed when the output ends.
func (c *Child) Line() <-chan []byte { return c.line }

// Done is closed when the process has ended. Until it is asked for the first time, a process that
// has ended stays readable in /proc.
func (c *Child) Done() <-chan struct{} {
	c.wait.Do(func() {
		go func() {
			defer close(c.done)
			c.err = c.cmd.Wait()
			c.stdout.SetReadDeadline(time.Now().Add(pipeGrace))
			<-c.read
			c.stdout.Close()
		}()
	})
	return c.done
}

// Said returns the end of what the process wrote to its standard error.
func (c *Child) Said() string { return c.said.String() }

// Failure returns why the process ended, or nil when it ended well. It must be called after Done
// is closed.
func (c *Child) Failure() error {
	var exit *exec.ExitError
	if errors.As(c.err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return fmt.Errorf("was ended by a signal: %v", status.Signal())
		}
		return fmt.Errorf("ended with exit code %d", exit.ExitCode())
	}
	if errors.Is(c.err, exec.ErrWaitDelay) { // it ended well; its output stayed open
		return nil
	}
	return c.err
}

// End asks the process and what it started to end with SIGTERM, and waits. When that takes longer
// than the grace, they are killed and late is true.
func (c *Child) End(grace time.Duration) (late bool) {
	if c.ended() {
		return false
	}
	c.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.Done():
	case <-timer.C:
		late = true
	}
	c.signal(syscall.SIGKILL) // also what it left behind in its group
	<-c.Done()
	return late
}

// Kill kills the process and its descendants, and waits. It does nothing if the process has
// already ended: its ID may belong to another process by now.
func (c *Child) Kill() {
	if c.ended() {
		return
	}
	c.signal(syscall.SIGKILL)
	<-c.Done()
}

func (c *Child) signal(s syscall.Signal) { syscall.Kill(-c.PID(), s) }

func (c *Child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Executable returns the path of a program that a command names, so that a missing one is told
// before anything starts.
func Executable(command []string) error {
	_, err := exec.LookPath(command[0])
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%s does not exist: run arena doctor for instructions", command[0])
	}
	return nil
}

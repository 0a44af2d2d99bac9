// Package child runs processes that must not outlive their parent. A child reports that it is
// ready by one line of JSON on its standard output, and ends when its standard input is closed,
// which happens when its parent dies.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/anser-rpc/anser/internal/tail"
)

// saidBytes is how many of the last bytes of a process's output are kept.
const saidBytes = 2 << 10

// Group starts children. Create one with [NewGroup], and close it when its children have ended.
type Group struct {
	starts chan func()
	ended  chan struct{}
}

// NewGroup returns a group without children.
func NewGroup() *Group {
	g := &Group{starts: make(chan func()), ended: make(chan struct{})}
	go g.run()
	return g
}

// run starts all children of the group from one thread that lives as long as the group: Linux
// sends the parent death signal when the thread that started the child dies, and Go may end
// threads at any time.
func (g *Group) run() {
	runtime.LockOSThread()
	defer close(g.ended)
	for start := range g.starts {
		start()
	}
}

// Close ends the group. Running children are killed, if the system supports it.
func (g *Group) Close() {
	close(g.starts)
	<-g.ended
}

// Child is a process started by a Group. Its methods are safe for concurrent use.
type Child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  *tail.Buffer
	ready chan []byte       // the first line of the output, or closed without one
	each  func(line []byte) // gets further lines, or nil
	done  chan struct{}
	err   error // result of Wait, set before done is closed
}

// Start runs the program of this process again with other arguments.
func (g *Group) Start(args ...string) (*Child, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program to start again: %w", err)
	}
	return g.StartProgram(path, nil, args...)
}

// StartProgram runs another program. If each is not nil, one goroutine calls it with every line of
// the output after the first, before Done is closed; it owns the line.
func (g *Group) StartProgram(path string, each func(line []byte), args ...string) (*Child, error) {
	c := &Child{
		cmd: exec.Command(path, args...), said: tail.New(saidBytes),
		ready: make(chan []byte, 1), each: each, done: make(chan struct{}),
	}
	c.cmd.SysProcAttr = attributes()
	c.cmd.Stderr = c.said
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.stdin = stdin
	started := make(chan error, 1)
	g.starts <- func() { started <- c.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", strings.Join(args, " "), err)
	}
	go c.watch(stdout)
	return c, nil
}

// watch reads the child's output and waits for its end.
func (c *Child) watch(stdout io.Reader) {
	r := bufio.NewReader(stdout)
	if line, err := r.ReadBytes('\n'); err == nil {
		c.ready <- line
	}
	close(c.ready)
	for c.each != nil {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		c.each(line)
	}
	io.Copy(io.Discard, r)
	c.err = c.cmd.Wait()
	close(c.done)
}

// Ready waits until the child reports that it is ready, and stores its report in v. It may be
// called once. If the child or ctx ends first, the error contains the child's last output.
func (c *Child) Ready(ctx context.Context, v any) error {
	select {
	case line, ok := <-c.ready:
		if !ok {
			<-c.done
			if c.err == nil {
				return fmt.Errorf("process %d ended before it was ready", c.PID())
			}
			return fmt.Errorf("process %d ended before it was ready: %w", c.PID(), c.Failure())
		}
		if err := json.Unmarshal(line, v); err != nil {
			return fmt.Errorf("process %d said %q: %w", c.PID(), line, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("process %d was not ready: %w; it said: %q", c.PID(), ctx.Err(), c.said)
	}
}

// PID returns the process ID.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Kill ends the process at once, as SIGKILL does.
func (c *Child) Kill() { c.cmd.Process.Kill() }

// Stop asks the process to end: by SIGTERM, or by closing its input on systems without it.
func (c *Child) Stop() {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.stdin.Close()
	}
}

// Failure returns why the process failed, with its last output, or nil after a success. It must be
// called after Done is closed.
func (c *Child) Failure() error {
	if c.err == nil {
		return nil
	}
	if said := c.said.String(); said != "" {
		return fmt.Errorf("%w; it said: %s", c.err, said)
	}
	return c.err
}

// Reason returns Failure, or an error that says that the process ended well: it is never nil.
func (c *Child) Reason() error {
	if err := c.Failure(); err != nil {
		return err
	}
	return errEndedWell
}

var errEndedWell = errors.New("it ended as if it had been stopped, with the exit code 0")

// End stops the process and waits, and kills it if that takes longer than grace.
func (c *Child) End(grace time.Duration) {
	c.Stop()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-c.done:
	case <-late.C:
		c.Kill()
		<-c.done
	}
	c.stdin.Close()
}

// SayReady is called by the child: it reports to the parent that the child is ready, with v.
func SayReady(stdout io.Writer, v any) error {
	return json.NewEncoder(stdout).Encode(v)
}

// Orphaned is called by the child: it returns a channel that is closed at the end of the input,
// which means that the parent has died or wants the child to end.
func Orphaned(stdin io.Reader) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, stdin)
		close(gone)
	}()
	return gone
}

// Package child runs processes that must not outlive the one that starts them. A child knows that
// it is one: it tells when it is ready, in one line of JSON on its standard output, and ends when
// its standard input does, which happens whenever its parent dies.
package child

import (
	"bufio"
	"context"
	"encoding/json"
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

// saidBytes is how much of what a process says last is kept.
const saidBytes = 2 << 10

// Group starts children. Make one with [NewGroup], and close it when its children have ended.
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

// run starts all children of the group from one thread that lives as long as the group: Linux sends
// the signal that is asked for at the parent's death when the thread dies that started the child,
// and Go ends threads as it likes.
func (g *Group) run() {
	runtime.LockOSThread()
	defer close(g.ended)
	for start := range g.starts {
		start()
	}
}

// Close ends the group. Children that still run are killed, where the system can do it.
func (g *Group) Close() {
	close(g.starts)
	<-g.ended
}

// Child is a process that was started by a Group. Its methods are safe for concurrent use.
type Child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  *tail.Buffer
	ready chan []byte // the first line of the output, or closed without one
	done  chan struct{}
	err   error // of Wait, set before done is closed
}

// Start runs the program of this process again with other arguments.
func (g *Group) Start(args ...string) (*Child, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program to start again: %w", err)
	}
	c := &Child{
		cmd: exec.Command(path, args...), said: tail.New(saidBytes),
		ready: make(chan []byte, 1), done: make(chan struct{}),
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

// watch reads what the child says and waits for its end.
func (c *Child) watch(stdout io.Reader) {
	r := bufio.NewReader(stdout)
	if line, err := r.ReadBytes('\n'); err == nil {
		c.ready <- line
	}
	close(c.ready)
	io.Copy(io.Discard, r)
	c.err = c.cmd.Wait()
	close(c.done)
}

// Ready waits until the child says that it is ready, and stores what it said in v. It may be called
// once. A child that ends before, or a ctx that does, is an error that tells the child's last words.
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

// PID returns the number of the process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Kill ends the process at once, as SIGKILL does.
func (c *Child) Kill() { c.cmd.Process.Kill() }

// Stop asks the process to end: with SIGTERM, and where there is no such thing by closing its input.
func (c *Child) Stop() {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.stdin.Close()
	}
}

// Failure returns why the process ended, with its last words, or nil when it ended well. It must be
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

// End stops the process and waits, and kills it when it takes longer than the grace.
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

// SayReady is for the child: it tells the parent that the child is ready, and v.
func SayReady(stdout io.Writer, v any) error {
	return json.NewEncoder(stdout).Encode(v)
}

// Orphaned is for the child: it returns a channel that is closed when the input ends, which is when
// the parent has died or wants the child to end.
func Orphaned(stdin io.Reader) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, stdin)
		close(gone)
	}()
	return gone
}

//go:build unix

package child

import (
	"fmt"
	"syscall"
)

// CanPause reports whether this system can pause processes.
const CanPause = true

// Pause pauses the process with SIGSTOP: it can neither notice nor prevent that.
func (c *Child) Pause() error { return c.signal(syscall.SIGSTOP, "stop") }

// Resume resumes the process.
func (c *Child) Resume() error { return c.signal(syscall.SIGCONT, "continue") }

func (c *Child) signal(s syscall.Signal, what string) error {
	if err := c.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s process %d: %w", what, c.PID(), err)
	}
	return nil
}

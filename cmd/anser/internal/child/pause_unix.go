//go:build unix

package child

import (
	"fmt"
	"syscall"
)

// CanPause says whether this system can stop processes without ending them.
const CanPause = true

// Pause has the process stand still, as SIGSTOP does: it neither notices nor can prevent it.
func (c *Child) Pause() error { return c.signal(syscall.SIGSTOP, "stop") }

// Resume lets the process go on.
func (c *Child) Resume() error { return c.signal(syscall.SIGCONT, "continue") }

func (c *Child) signal(s syscall.Signal, what string) error {
	if err := c.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s process %d: %w", what, c.PID(), err)
	}
	return nil
}

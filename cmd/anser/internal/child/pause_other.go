//go:build !unix

package child

import "errors"

// CanPause reports whether this system can pause processes.
const CanPause = false

var errNoPause = errors.New("this system cannot pause a process: leave this step out")

// Pause is not supported on this system.
func (c *Child) Pause() error { return errNoPause }

// Resume is not supported on this system.
func (c *Child) Resume() error { return errNoPause }

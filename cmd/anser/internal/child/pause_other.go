//go:build !unix

package child

import "errors"

// CanPause says whether this system can stop processes without ending them.
const CanPause = false

var errNoPause = errors.New("this system cannot stop a process without ending it: leave it out")

// Pause would have the process stand still.
func (c *Child) Pause() error { return errNoPause }

// Resume would let the process go on.
func (c *Child) Resume() error { return errNoPause }

// Package accept tells errors of a listener that pass from those that do not, and addresses that only this machine
// reaches from others.
package accept

import (
	"errors"
	"syscall"
	"time"
)

const (
	firstWait = 5 * time.Millisecond
	mostWait  = 250 * time.Millisecond // four errors a second cost nothing, and whoever waits in the queue is soon served
)

// Retry is how long to wait between calls of Accept that fail. The zero value is one that has not failed.
type Retry struct{ wait time.Duration }

// After returns how long to wait before Accept is called again after err, longer each time. ok is false if that is
// of no use; without an error the next wait is the first one again.
func (r *Retry) After(err error) (wait time.Duration, ok bool) {
	if err == nil {
		r.wait = 0
		return 0, true
	}
	if !passes(err) {
		return 0, false
	}
	r.wait = min(max(2*r.wait, firstWait), mostWait)
	return r.wait, true
}

// passes reports whether err is one of file descriptors or memory that are used up, or of a client that hung up in
// the queue.
func passes(err error) bool {
	for _, t := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

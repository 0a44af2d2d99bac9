// Package accept distinguishes temporary errors of a listener from permanent ones, and addresses
// that only this machine can reach from others.
package accept

import (
	"errors"
	"syscall"
	"time"
)

const (
	firstWait = 5 * time.Millisecond
	mostWait  = 250 * time.Millisecond // four errors per second cost nothing, and a waiting client is served soon
)

// Retry computes the delay between calls of Accept that fail. The zero value is ready for use.
type Retry struct{ wait time.Duration }

// After returns how long to wait before Accept is called again after err, longer each time. ok is
// false if the error is permanent; a nil error resets the delay.
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

// passes reports whether err is a lack of file descriptors or memory, or comes from a client that
// hung up in the queue.
func passes(err error) bool {
	for _, t := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

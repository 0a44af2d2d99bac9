//go:build !linux

package sysconn

import "net"

// ReadQueue is a stub: SIOCINQ is used on Linux only.
type ReadQueue struct{}

// NewReadQueue reports that there is none.
func NewReadQueue(net.Conn) (ReadQueue, bool) { return ReadQueue{}, false }

// Len returns 0.
func (ReadQueue) Len() int { return 0 }

// Wait returns at once.
func (ReadQueue) Wait() {}

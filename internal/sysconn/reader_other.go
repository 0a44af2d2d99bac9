//go:build !unix

package sysconn

import "net"

// Reader is not available on this platform.
type Reader struct{}

// NewReader returns nil.
func NewReader(net.Conn, Room) *Reader { return nil }

// Read is never called.
func (*Reader) Read() (n int, err error) { panic("there is no socket") }

// Follow is never called.
func (*Reader) Follow(*Reader) { panic("there is no socket") }

// Silent is never called.
func (*Reader) Silent() bool { panic("there is no socket") }

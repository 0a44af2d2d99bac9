//go:build !unix

package sysconn

import "net"

// Writer is not available on this platform.
type Writer struct{}

// NewWriter returns nil.
func NewWriter(net.Conn) *Writer { return nil }

// TryWriteBoth is never called.
func (*Writer) TryWriteBoth(head, out []byte) (taken int, err error) { panic("there is no socket") }

// LimitUnsent is never called.
func (*Writer) LimitUnsent(int) { panic("there is no socket") }

// TryWrite is never called.
func (*Writer) TryWrite([]byte) (taken int, err error) { panic("there is no socket") }

//go:build !linux

package sysconn

import "net"

// WriteLast is not available on this platform.
func WriteLast(net.Conn, []byte) bool { return false }

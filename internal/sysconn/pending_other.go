//go:build !unix

package sysconn

import "net"

// Pending returns nil: the connections are not known here.
func Pending(net.Listener) []net.Conn { return nil }

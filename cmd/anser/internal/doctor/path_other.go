//go:build !linux

package doctor

import "net"

// pathMTU is known on Linux only.
func pathMTU(net.Conn) int { return 0 }

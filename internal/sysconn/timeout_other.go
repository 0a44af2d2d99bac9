//go:build !linux

package sysconn

import (
	"net"
	"time"
)

// SetUserTimeout does nothing on this platform: only Linux has TCP_USER_TIMEOUT.
func SetUserTimeout(net.Conn, time.Duration) {}

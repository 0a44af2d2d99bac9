//go:build !linux

package sysconn

import (
	"net"
	"time"
)

// SetUserTimeout does nothing here: only Linux has TCP_USER_TIMEOUT.
func SetUserTimeout(net.Conn, time.Duration) {}

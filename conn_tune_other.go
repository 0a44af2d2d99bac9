//go:build !linux

package anser

import (
	"net"
	"time"
)

// tune does nothing here: only Linux has TCP_USER_TIMEOUT.
func tune(net.Conn, time.Duration) {}

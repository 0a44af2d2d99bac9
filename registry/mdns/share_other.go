//go:build !unix && !windows

package mdns

import "syscall"

// share does nothing where ports cannot be shared.
func share(_, _ string, _ syscall.RawConn) error { return nil }
